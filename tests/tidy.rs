//! The style of the tree, checked: which module may use which, how long a file may get, and what must not be left
//! behind. A failure names the file and the line.

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust source of the workspace, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "tests", "benches", "wallet-backend", "fuzz"]
        .map(|f| root.join(f))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is UTF-8");
                found.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// The line, counted from 1, and the module, of each `crate::module` that a source uses outside its tests.
fn uses(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(number, line)| {
            line.split("crate::").skip(1).map(move |rest| {
                (
                    number + 1,
                    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                        .next()
                        .unwrap_or(""),
                )
            })
        })
}

/// `(below, what)`: sources whose path starts with `below` never use the modules `what`.
const ARROWS: [(&str, &[&str]); 15] = [
    (
        "src/window",
        &["rules", "admission", "proxy", "server", "admin", "telemetry"],
    ),
    (
        "src/bucket",
        &["rules", "admission", "proxy", "server", "admin", "telemetry"],
    ),
    (
        "src/params",
        &["admission", "proxy", "server", "admin", "telemetry"],
    ),
    (
        "src/router",
        &["admission", "proxy", "server", "admin", "telemetry"],
    ),
    (
        "src/rules",
        &["admission", "proxy", "server", "admin", "telemetry"],
    ),
    ("src/admission", &["proxy", "server", "admin", "telemetry"]),
    ("src/proxy", &["server", "admin"]),
    (
        "wallet-backend/src/money",
        &[
            "account", "command", "ledger", "store", "combiner", "wallet", "jobs", "http",
        ],
    ),
    (
        "wallet-backend/src/account",
        &["command", "ledger", "store", "combiner", "wallet", "jobs", "http"],
    ),
    (
        "wallet-backend/src/command",
        &["ledger", "store", "combiner", "wallet", "jobs", "http"],
    ),
    (
        "wallet-backend/src/ledger",
        &["store", "combiner", "wallet", "jobs", "http"],
    ),
    (
        "wallet-backend/src/journal",
        &["ledger", "store", "combiner", "wallet", "jobs", "http"],
    ),
    (
        "wallet-backend/src/store",
        &["combiner", "wallet", "jobs", "http"],
    ),
    ("wallet-backend/src/combiner", &["wallet", "jobs", "http"]),
    ("wallet-backend/src/wallet", &["http"]),
];

#[test]
fn arrows_between_modules_point_one_way() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.display().to_string();
        for (below, never) in ARROWS.iter().filter(|(below, _)| name.starts_with(below)) {
            for (line, module) in uses(&text).filter(|(_, module)| never.contains(module)) {
                wrong.push(format!("{name}:{line}: {below} must not use crate::{module}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_pure_cores_read_no_clock_and_do_no_io() {
    let pure = [
        "src/window",
        "src/bucket",
        "src/params",
        "src/router",
        "wallet-backend/src/ledger",
        "wallet-backend/src/journal",
    ];
    let impure = [
        "Instant::now",
        "SystemTime",
        "std::fs",
        "std::net",
        "tokio::",
        "std::thread",
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.display().to_string();
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        if pure.iter().any(|below| name.starts_with(below)) {
            for word in impure.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{name}: a pure module uses {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_has_at_most_500_lines_or_says_why_not() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > 500 && !text.contains("Longer than 500 lines because"))
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn nothing_is_left_for_later_in_the_source() {
    let marks = ["TODO", "FIXME", "XXX:", "todo!(", "unimplemented!("];
    let mut left = Vec::new();
    for (path, text) in sources()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("tidy.rs"))
    {
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                left.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn no_module_is_named_mod_or_after_nothing_in_particular() {
    let vague = [
        "mod.rs",
        "utils.rs",
        "util.rs",
        "common.rs",
        "helpers.rs",
        "manager.rs",
    ];
    let found: Vec<PathBuf> = sources()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| vague.iter().any(|v| name == *v))
        })
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn the_architecture_page_names_every_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    let missing: Vec<String> = sources()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("src") || path.starts_with("wallet-backend/src"))
        .filter(|path| !path.ends_with("lib.rs") && !path.ends_with("main.rs"))
        .filter(|path| {
            !path.components().any(|part| {
                ["tests", "tests.rs", "fixtures.rs"]
                    .iter()
                    .any(|t| part.as_os_str() == *t)
            })
        })
        .map(|path| path.display().to_string())
        .filter(|name| {
            let short = name.split("src/").nth(1).unwrap_or(name).trim_end_matches(".rs");
            !page.contains(&format!("`{short}`"))
        })
        .collect();
    assert!(
        missing.is_empty(),
        "not named in ARCHITECTURE.md:\n{}",
        missing.join("\n")
    );
}
