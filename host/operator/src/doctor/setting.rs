//! Whether the controller starts with a value that a Deployment gives a variable: the flags' own parsers say so.
//!
//! The environment of this process has no part in it.

use clap::{Args as _, Command};

use crate::logging;
use crate::options::ControllerOptions;

/// What the controller would say of it before it ends; nothing where it takes the value, or has no such variable.
pub(super) fn refusal(variable: &str, value: &str) -> Option<String> {
    let options = ControllerOptions::augment_args(Command::new("mortise"));
    let mut flags = options.get_arguments();
    let flag = flags.find(|it| it.get_env().is_some_and(|name| name == variable))?;
    let given = format!("--{}={value}", flag.get_long()?);
    // What is given as a flag is not looked for in the environment, and no other flag is there.
    let alone = Command::new("mortise").arg(flag.clone());
    if let Err(error) = alone.try_get_matches_from(["mortise", &given]) {
        return Some(in_one_line(&error.to_string()));
    }
    if variable == "LOG_LEVEL" {
        return logging::refusal(value);
    }
    None
}

/// The first paragraph of what clap says.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_refused_as_the_controller_refuses_them() {
        for (variable, value, wanted) in [
            ("BATCH_MAX_DURATION", "10s", None),
            ("BATCH_MAX_DURATION", "ten", Some("--batch-max-duration")),
            ("PREFERENCE_POLICY", "Ignore", None),
            ("PREFERENCE_POLICY", "Sometimes", Some("possible values")),
            ("DISABLE_LEADER_ELECTION", "false", None),
            ("DISABLE_LEADER_ELECTION", "perhaps", Some("perhaps")),
            ("KUBE_CLIENT_QPS", "-1", None),
            ("METRICS_PORT", "8000", None),
            ("METRICS_PORT", "80000", Some("80000")),
            ("VM_MEMORY_OVERHEAD_PERCENT", "7,5", Some("7,5")),
            ("FEATURE_GATES", "NodeRepair=true,Unknown=true", None),
            ("MEMORY_LIMIT", "-1", None),
            ("ENABLE_PROFILING", "true", None),
            ("LOG_LEVEL", "debug", None),
            ("LOG_LEVEL", "loud", Some("loud")),
            ("ANOTHER", "anything", None),
        ] {
            let refusal = refusal(variable, value);
            match wanted {
                None => assert_eq!(refusal, None, "{variable}={value}"),
                Some(piece) => {
                    let refusal = refusal.unwrap_or_default();
                    assert!(refusal.contains(piece), "{variable}={value}: {refusal}");
                    assert!(!refusal.contains('\n'), "{variable}={value}: {refusal}");
                }
            }
        }
    }
}
