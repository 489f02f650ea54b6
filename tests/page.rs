//! The pages for readers, as tests run them: blocks of shell as they stand, and what is printed below them.
//!
//! A block is what stands between two fences; no page has three backquotes anywhere else.

use std::ffi::OsStr;
use std::process::Output;

/// A block of shell whose answer is printed: a line with its status and a colon, then a block.
#[derive(Debug)]
pub(crate) struct Example {
    /// Of the page, counted from 1: where the shell begins.
    pub(crate) line: usize,
    pub(crate) command: &'static str,
    pub(crate) status: u16,
    /// The language of the answer's block: what it is to be compared as.
    pub(crate) language: &'static str,
    pub(crate) answer: &'static str,
}

/// The language and the text of a block.
fn block(piece: &'static str) -> (&'static str, &'static str) {
    let (language, text) = piece.split_once('\n').unwrap();
    (language, text.trim_end())
}

/// The lines of the first block of shell after a mark.
pub(crate) fn block_after(page: &'static str, mark: &str) -> Vec<&'static str> {
    let (_, rest) = page
        .split_once(mark)
        .unwrap_or_else(|| panic!("{mark:?} is not on the page"));
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    block.lines().collect()
}

/// Every block of shell of a page, each with its answer.
pub(crate) fn examples(page: &'static str) -> Vec<Example> {
    let pieces: Vec<&str> = page.split("```").collect();
    let mut line = 1;
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if at % 2 == 1 && piece.starts_with("sh\n") {
            let told = |what: &str| -> ! { panic!("line {line}: the example has no {what} below it") };
            let status = pieces.get(at + 1).map_or("", |between| between.trim());
            let status = status.strip_suffix(':').and_then(|status| status.parse().ok());
            let Some(status) = status else { told("status") };
            let Some(answer) = pieces.get(at + 2) else {
                told("answer")
            };
            let (language, answer) = block(answer);
            assert_ne!(language, "sh", "line {line}: shell is no answer");
            let (_, command) = block(piece);
            found.push(Example {
                line,
                command,
                status,
                language,
                answer,
            });
        }
        line += piece.matches('\n').count();
    }
    found
}

/// Runs shell as a reader would, in the repository's root, but for what is replaced in it.
pub(crate) async fn run<T: AsRef<str>>(
    shell: &str,
    replaced: &[(T, T)],
    curl_home: Option<&OsStr>,
) -> Output {
    let line = replaced.iter().fold(shell.to_owned(), |line, (from, to)| {
        line.replace(from.as_ref(), to.as_ref())
    });
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if let Some(home) = curl_home {
        shell.env("CURL_HOME", home);
    }
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap())
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
