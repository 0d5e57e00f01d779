//! The corpus on an interpreter that lacks some of its features. It refuses missing features, saying so; all other
//! cases have the same outcome.
//!
//! A crate of its own: everything else in the workspace turns all features on.

#[path = "../src/compare.rs"]
pub mod compare;
#[path = "../src/corpus.rs"]
pub mod corpus;
#[path = "../src/host.rs"]
pub mod host;
#[path = "../src/parallel.rs"]
pub mod parallel;

#[cfg(test)]
mod tests {
    use crate::{compare, corpus, host, parallel};
    use agentscript::{CompileOptions, Language, Stress, compile};
    use std::path::Path;

    fn has_intl() -> bool {
        cfg!(feature = "intl")
    }

    fn has_types() -> bool {
        cfg!(feature = "typescript")
    }

    /// In every message about a feature that is not there.
    const LACKS: &str = "lacks the feature";

    /// Message and hint of the first diagnostic.
    fn refusal(script: &str, language: Option<Language>) -> Option<String> {
        let options = CompileOptions { language, ..CompileOptions::default() };
        let error = compile(script, &options).err()?;
        let first = error.diagnostics.first()?;
        Some(format!("{}; {}", first.message, first.hint.as_deref().unwrap_or_default()))
    }

    #[test]
    fn what_is_missing_is_refused_when_a_script_is_compiled() {
        for (script, name) in [
            ("return new Intl.NumberFormat('de').format(1)", "Intl"),
            ("return ['b', 'a'].sort((a, b) => a.localeCompare(b))", "localeCompare"),
            ("return (1234.5)?.toLocaleString()", "toLocaleString"),
            ("return new Date(0)['toLocaleDateString']()", "toLocaleDateString"),
            ("const upper = 'i'.toLocaleUpperCase; return 1", "toLocaleUpperCase"),
        ] {
            match refusal(script, None) {
                None => assert!(has_intl(), "{script} is compiled"),
                Some(text) => {
                    assert!(!has_intl(), "{script}: {text}");
                    assert!(
                        text.contains(&format!(
                            "'{name}' is not available: this build of AgentScript {LACKS} `intl`; "
                        )),
                        "{text}"
                    );
                }
            }
        }
        // Names of the script are its own.
        for script in
            ["const Intl = 1; return Intl", "const { toLocaleString } = { toLocaleString: 1 }; return toLocaleString"]
        {
            assert_eq!(refusal(script, None), None, "{script}");
        }
    }

    #[test]
    fn types_are_refused_without_the_feature_that_erases_them() {
        for script in ["const x: number = 1; return x", "interface A { a: string }\nreturn 1", "return 1 as number"] {
            for language in [None, Some(Language::TypeScript)] {
                match refusal(script, language) {
                    None => assert!(has_types(), "{script} is compiled"),
                    Some(text) => {
                        assert!(!has_types(), "{script}: {text}");
                        assert!(text.contains("lacks the feature `typescript`"), "{script}: {text}");
                    }
                }
            }
            assert!(refusal(script, Some(Language::JavaScript)).is_some_and(|text| !text.contains(LACKS)), "{script}");
        }
        // JavaScript is TypeScript too.
        assert_eq!(refusal("return 1", Some(Language::TypeScript)), None);
    }

    /// Cases that compute the name of a method that is missing, so that no compiler can refuse it.
    const COMPUTED: &[&str] = &["lengths and names", "methods of dates on what is none"];

    /// Every case that needs nothing that is missing.
    #[test]
    fn the_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
        let cases = corpus::load(&root);
        let outcomes = parallel::map(&cases, |case| {
            let outcome = host::run(case, |run| run.stress(Stress { hide_frames: true, ..Stress::default() }));
            let text = outcome.to_json();
            let is_refused = text.contains(LACKS) || outcome.logs.iter().any(|log| log.contains(LACKS));
            (is_refused, compare::problem(case, &outcome))
        });
        let mut failed = Vec::new();
        let mut refused = 0;
        for (case, (is_refused, problem)) in cases.iter().zip(outcomes) {
            refused += usize::from(is_refused);
            let is_excused = is_refused
                || !cfg!(feature = "typescript")
                    && case.file.parent().is_some_and(|folder| folder.ends_with("typescript"))
                || !cfg!(feature = "intl") && COMPUTED.contains(&case.name.as_str());
            if let Some(problem) = problem.filter(|_| !is_excused) {
                failed.push(format!("{}: {}\n     {problem}", case.file.display(), case.name));
            }
        }
        let all = cfg!(feature = "intl") && cfg!(feature = "time-zones") && cfg!(feature = "typescript");
        assert!(failed.is_empty(), "{} of {} cases fail:\n\n{}", failed.len(), cases.len(), failed.join("\n\n"));
        assert_eq!(refused == 0, all, "{refused} of {} cases are refused", cases.len());
        assert!(refused < cases.len() / 3, "{refused} of {} cases are refused", cases.len());
    }
}
