use super::*;

/// A MariaDB as it comes, in a session that was told what sessions are told.
fn usual() -> Variables {
    let pairs = [
        ("auto_increment_increment", "1"),
        ("binlog_format", "MIXED"),
        ("innodb_deadlock_detect", "ON"),
        ("innodb_doublewrite", "ON"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_read_only", "OFF"),
        ("innodb_snapshot_isolation", "OFF"),
        ("log_bin", "OFF"),
        ("max_allowed_packet", "16777216"),
        ("max_connections", "151"),
        ("read_only", "OFF"),
        ("sql_mode", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"),
        ("sync_binlog", "0"),
        ("time_zone", "+00:00"),
        ("tx_isolation", "READ-COMMITTED"),
        ("version", "10.11.19-MariaDB-0+deb12u1"),
        ("wsrep_on", "OFF"),
    ];
    let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.into_iter().collect()
}

/// What is found where some variables are others.
fn found(others: &[(&str, &str)]) -> Vec<(Severity, &'static str)> {
    let mut variables = usual();
    for (name, value) in others {
        variables.insert((*name).to_owned(), (*value).to_owned());
    }
    let probed = judge(&variables, 0, 8);
    let found = probed.findings.iter();
    found.map(|finding| (finding.severity, finding.subject)).collect()
}

#[test]
fn a_server_as_it_comes_is_taken_without_a_word() {
    assert_eq!(found(&[]), []);
    assert_eq!(found(&[("version", "8.0.16")]), []);
    assert_eq!(found(&[("version", "9.7.4-2")]), []);
    assert_eq!(found(&[("version", "5.5.5-10.6.0-MariaDB-log")]), []);
    assert_eq!(
        found(&[("version", "11.8.2-MariaDB"), ("innodb_snapshot_isolation", "ON")]),
        []
    );
    assert_eq!(
        found(&[("read_only", "NO_LOCK")]).len(),
        0,
        "a newer MariaDB's word for it"
    );
}

#[test]
fn a_server_that_cannot_skip_what_is_locked_is_refused() {
    for version in ["5.7.44", "8.0.15", "10.5.29-MariaDB", "5.5.5-10.3.39-MariaDB"] {
        assert_eq!(
            found(&[("version", version)]),
            [(Severity::Refused, "version")],
            "{version}"
        );
    }
    let tidb = found(&[("version", "8.0.11-TiDB-v8.1.0")]);
    assert_eq!(tidb, [(Severity::Refused, "SKIP LOCKED")]);
}

#[test]
fn each_setting_that_breaks_a_promise_is_refused() {
    for (subject, others) in [
        ("read_only", &[("read_only", "ON")][..]),
        ("super_read_only", &[("super_read_only", "ON")]),
        ("innodb_read_only", &[("innodb_read_only", "ON")]),
        (
            "binlog_format",
            &[
                ("log_bin", "ON"),
                ("sync_binlog", "1"),
                ("binlog_format", "STATEMENT"),
            ],
        ),
        ("max_allowed_packet", &[("max_allowed_packet", "1048576")]),
        ("isolation", &[("tx_isolation", "REPEATABLE-READ")]),
        ("isolation", &[("transaction_isolation", "SERIALIZABLE")]),
        ("sql_mode", &[("sql_mode", "")]),
    ] {
        assert_eq!(found(others), [(Severity::Refused, subject)], "{others:?}");
    }
}

#[test]
fn each_setting_that_somebody_may_count_on_is_warned_of() {
    for (subject, others) in [
        (
            "innodb_flush_log_at_trx_commit",
            &[("innodb_flush_log_at_trx_commit", "2")][..],
        ),
        (
            "sync_binlog",
            &[("log_bin", "ON"), ("binlog_format", "ROW"), ("sync_binlog", "0")],
        ),
        ("binlog_format", &[("log_bin", "ON"), ("sync_binlog", "1")]),
        ("innodb_doublewrite", &[("innodb_doublewrite", "OFF")]),
        ("max_connections", &[("max_connections", "7")]),
        ("innodb_deadlock_detect", &[("innodb_deadlock_detect", "OFF")]),
        ("time_zone", &[("time_zone", "SYSTEM")]),
        ("auto_increment_increment", &[("auto_increment_increment", "7")]),
        ("wsrep_on", &[("wsrep_on", "ON")]),
    ] {
        assert_eq!(found(others), [(Severity::Warned, subject)], "{others:?}");
    }
}

#[test]
fn what_the_binary_log_is_like_matters_only_where_there_is_one() {
    assert_eq!(found(&[("binlog_format", "STATEMENT"), ("sync_binlog", "0")]), []);
}

#[test]
fn ids_that_compare_as_letters_are_refused() {
    let probed = judge(&usual(), 3, 8);
    let refused: Vec<_> = probed.refused().map(|finding| finding.subject).collect();
    assert_eq!(refused, ["collation"]);
    assert_eq!(probed.warned().count(), 0);
}

#[test]
fn a_finding_says_what_it_is_and_how_to_mend_it() {
    let mut variables = usual();
    variables.insert("innodb_flush_log_at_trx_commit".to_owned(), "2".to_owned());
    let text = judge(&variables, 0, 8).to_string();
    let (first, second) = text.split_once('\n').unwrap();
    assert!(
        first.starts_with("MariaDB 10.11.19, auto_increment_increment=1, "),
        "{first}"
    );
    assert!(
        first.contains("sql_mode=STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"),
        "{first}"
    );
    assert_eq!(
        second,
        "warning: innodb_flush_log_at_trx_commit is 2: a crash of the machine loses up to a second of acknowledged \
         operations; SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the server's configuration"
    );
}
