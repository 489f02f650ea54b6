# syntax=docker/dockerfile:1
# Both binaries on a small image with CA roots and nothing else; the default command is the all-in-one.
#
#   docker build -t sluice .
#   docker run --rm -p 127.0.0.1:8080:8080 -v sluice-data:/data sluice
#
# It listens on every interface of its container, and whoever reaches that can move money. Publish the port on loopback
# as above, or mount a file of bearer tokens and name it in SLUICE_WALLET_TOKEN_FILE.
#
# A mirror or a local image can stand in for either base:
#   docker build --build-arg BUILD_IMAGE=… --build-arg RUNTIME_IMAGE=… .
# RUNTIME_IMAGE needs glibc and libgcc of at least BUILD_IMAGE's age, and CA roots.
ARG BUILD_IMAGE=docker.io/library/rust:1.95-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /src

# The dependencies alone, from the manifests and empty crates: this layer stays cached until Cargo.lock changes.
COPY Cargo.toml Cargo.lock ./
COPY wallet-backend/Cargo.toml wallet-backend/
RUN mkdir -p src wallet-backend/src benches \
 && echo 'fn main() {}' | tee src/main.rs > wallet-backend/src/main.rs \
 && touch src/lib.rs wallet-backend/src/lib.rs \
 && cargo build --release --locked --workspace --bins \
 && rm -rf src wallet-backend/src

COPY src src
COPY wallet-backend/src wallet-backend/src
# Newer than the empty crates, whatever the time stamps of the checkout say.
RUN find src wallet-backend/src -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --workspace --bins \
 && mkdir -p /out/data \
 && cp target/release/sluice target/release/wallet-backend /out/

FROM ${RUNTIME_IMAGE}
COPY --from=build /out/sluice /out/wallet-backend /usr/local/bin/
COPY rules /etc/sluice/rules
# Numeric, so that it also holds where the image has no such name and where the orchestrator demands a non-root id.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/usr/local/bin/sluice", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["run", "--listen", "0.0.0.0:8080", "--rules", "/etc/sluice/rules", "--data", "/data"]
