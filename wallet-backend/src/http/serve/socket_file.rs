//! The file of a Unix socket: made with mode 0660, taken over from a process that died, removed at the end.
//!
//! Owner and group may connect, nobody else: the file's permissions are the access control of a local wallet.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// Read and write, that is connect, for owner and group.
const MODE: u32 = 0o660;

/// Removes the file when dropped, unless another process has put its own in its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Binds, after removing the file of a process that is gone.
///
/// # Errors
/// `AddrInUse` where a process answers on the socket or the file is no socket; else what the system says.
pub(super) async fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    remove_if_stale(path).await?;
    let listener = UnixListener::bind(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        device: metadata.dev(),
        inode: metadata.ino(),
    };
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok((listener, file))
}

async fn remove_if_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    let in_use = |why: &str| io::Error::new(ErrorKind::AddrInUse, format!("{}: {why}", path.display()));
    if !metadata.file_type().is_socket() {
        return Err(in_use("the file exists and is no socket"));
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(in_use("another process serves this socket")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

impl SocketFile {
    fn is(&self, metadata: &Metadata) -> bool {
        (metadata.dev(), metadata.ino()) == (self.device, self.inode)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| self.is(&metadata))
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket file stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_left_by_a_dead_process_is_taken_over_and_removed_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.sock");
        // A std listener leaves its file behind, as a killed process does.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (listener, file) = bind(&path).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        drop((listener, file));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_that_is_served_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.sock");
        let first = bind(&path).await.unwrap();
        assert_eq!(bind(&path).await.unwrap_err().kind(), ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(first);
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert_eq!(bind(&path).await.unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    #[tokio::test]
    async fn the_file_of_a_successor_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.sock");
        let (_listener, file) = bind(&path).await.unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = bind(&path).await.unwrap();
        drop(file);
        assert!(path.exists());
    }
}
