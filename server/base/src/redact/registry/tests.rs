use super::*;

fn registry() -> SecretRegistry {
    SecretRegistry::new(["first-secret", "short"])
}

fn clean(registry: &SecretRegistry, text: &str) -> String {
    registry.redactor().redact_text(text).into_owned()
}

#[test]
fn an_added_secret_is_redacted_and_a_removed_one_is_not() {
    let registry = registry();
    let text = "first-secret second-secret third-secret short";
    let before = registry.redactor();
    assert_eq!(clean(&registry, text), "[secret] second-secret third-secret short");
    registry.add(" second-secret\n").expect("long enough");
    assert_eq!(clean(&registry, text), "[secret] [secret] third-secret short");
    registry.add_all(["third-secret", "fourth-secret"]).expect("long enough");
    assert_eq!(clean(&registry, text), "[secret] [secret] [secret] short");
    registry.remove("second-secret");
    assert_eq!(clean(&registry, text), "[secret] second-secret [secret] short");
    registry.remove_all(["first-secret", "third-secret", "fourth-secret", "never-added"]);
    assert_eq!(clean(&registry, text), text);
    assert!(registry.redactor().is_empty());
    assert_eq!(before.redact_text(text), "[secret] second-secret third-secret short", "a redactor never changes");
}

#[test]
fn a_value_is_redacted_until_its_last_owner_has_removed_it() {
    let registry = registry();
    registry.add("first-secret").expect("known");
    registry.add_all(["other-secret", "other-secret"]).expect("long enough");
    registry.remove("first-secret");
    registry.remove("other-secret");
    assert_eq!(clean(&registry, "first-secret other-secret"), "[secret] [secret]");
    registry.remove_all(["first-secret", "other-secret"]);
    assert_eq!(clean(&registry, "first-secret other-secret"), "first-secret other-secret");
    registry.remove("first-secret");
    registry.add("first-secret").expect("long enough");
    assert_eq!(clean(&registry, "first-secret"), "[secret]");
}

#[test]
fn short_secrets_are_refused_with_all_that_come_with_them() {
    let registry = registry();
    for short in ["", "  ", "abcde", " abcde ", "äöüäö"] {
        let refused = registry.add_all(["long-enough", short]).expect_err("too short");
        assert_eq!(refused, RefusedSecret::TooShort);
        let message = refused.to_string();
        assert!(message.contains("at least 6 characters") && !message.contains("abcde"), "{message}");
    }
    assert_eq!(clean(&registry, "long-enough"), "long-enough", "all or none");
    registry.add("äöüäöü").expect("six characters");
}

#[test]
fn number_and_length_are_limited_for_additions() {
    let secrets: Vec<String> = (0..MAX_SECRETS + 1).map(|at| format!("secret {at:09}")).collect();
    let all = || secrets.iter().map(String::as_str);
    let registry = SecretRegistry::default();
    assert_eq!(registry.add_all(all()), Err(RefusedSecret::TooMany));
    assert!(registry.redactor().is_empty());
    registry.add_all(all().skip(1)).expect("as many as are allowed");
    assert_eq!(registry.add(&secrets[0]), Err(RefusedSecret::TooMany));
    registry.add(&secrets[1]).expect("a second owner takes no room");
    registry.remove(&secrets[2]);
    registry.add(&secrets[0]).expect("there is room again");
    assert_eq!(clean(&registry, &format!("{}, {}", secrets[0], secrets[2])), format!("[secret], {}", secrets[2]));

    let configured = SecretRegistry::new(all());
    assert_eq!(clean(&configured, &secrets[7]), "[secret]", "a configuration may have more");
    assert_eq!(configured.add("another"), Err(RefusedSecret::TooMany));
    let long = "x".repeat(MAX_SECRET_BYTES + 1);
    assert_eq!(SecretRegistry::default().add(&long), Err(RefusedSecret::TooMany));
}

#[test]
fn subscribers_learn_of_changes_only() {
    let registry = registry();
    let mut changes = registry.subscribe();
    let has_changed = |changes: &mut watch::Receiver<Redactor>| {
        let has_changed = changes.has_changed().expect("not dropped");
        changes.mark_unchanged();
        has_changed
    };
    registry.add("first-secret").expect("known");
    registry.remove("first-secret");
    assert!(!has_changed(&mut changes), "the first owner keeps it");
    registry.add("second-secret").expect("long enough");
    assert!(has_changed(&mut changes));
    registry.remove("second-secret");
    assert!(has_changed(&mut changes));
}

/// The logs of a process have one redactor, which other tests of this process share.
#[test]
fn logs_are_redacted_with_the_secrets_of_all_registries() {
    let (one, two) = (SecretRegistry::new(["log-one-1"]), SecretRegistry::new(["log-two-1", "log-both"]));
    let line = "log-one-1 log-one-2 log-two-1 log-two-2 log-both";
    one.join_logs();
    one.join_logs();
    two.join_logs();
    assert_eq!(redact_log_line(line), "[secret] log-one-2 [secret] log-two-2 [secret]");
    one.add_all(["log-one-2", "log-both"]).expect("long enough");
    two.add("log-two-2").expect("long enough");
    assert_eq!(redact_log_line(line), "[secret] [secret] [secret] [secret] [secret]");
    two.remove("log-two-1");
    assert_eq!(redact_log_line(line), "[secret] [secret] log-two-1 [secret] [secret]");
    drop(two);
    assert_eq!(redact_log_line(line), "[secret] [secret] log-two-1 log-two-2 [secret]");
    drop(one);
    assert_eq!(redact_log_line(line), line);
}

/// A secret that begins like one of another registry is redacted as a whole.
#[test]
fn secrets_of_two_registries_that_overlap_leave_nothing_in_logs() {
    let (short, long) = (SecretRegistry::new(["overlap-abc"]), SecretRegistry::new(["overlap-abc-def", "abc-defghi"]));
    short.join_logs();
    long.join_logs();
    assert_eq!(redact_log_line("<overlap-abc-def> <overlap-abc-defghi>"), "<[secret]> <[secret]>");
}

#[test]
fn readers_see_every_secret_once_it_was_added() {
    let registry = SecretRegistry::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                for at in 0..50 {
                    let secret = format!("secret-{thread}-{at}");
                    registry.add(&secret).expect("long enough");
                    assert_eq!(registry.redactor().redact_text(&secret), "[secret]");
                    if at % 2 == 0 {
                        registry.remove(&secret);
                    }
                }
            });
        }
    });
    assert_eq!(registry.state().owners.len(), 100);
}
