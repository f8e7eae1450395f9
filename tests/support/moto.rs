//! moto's server with an account in it: an AWS that is not ours, as a process of its own.
//!
//! What it has is made by `tests/moto/server.py`, which also asks it through boto3 for those who want another word than
//! that of the SDK under test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::workspace_root;

/// The Python that has moto where it is not the one on the PATH; `.ci/run` sets it.
const PYTHON: &str = "MORTISE_MOTO_PYTHON";

/// Begins what the SDK under test says of itself.
const OUR_SDK: &str = "aws-sdk-rust/";

/// A running server; it is ended on drop.
pub struct Moto {
    server: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What the account has: endpoint, region, cluster, subnets, security group, images.
    pub has: Value,
}

impl Moto {
    /// Starts it; `None`, with a line that says so, where Python has no moto.
    pub fn start() -> Option<Self> {
        let given = std::env::var(PYTHON).ok();
        let python = given.as_deref().unwrap_or("python3");
        let has_moto = Command::new(python)
            .args(["-c", "import moto.server, boto3"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !has_moto {
            assert!(given.is_none(), "{PYTHON}={python} has no moto");
            eprintln!("skipped: {python} has no moto (python3 -m pip install 'moto[server]')");
            return None;
        }
        let mut server = Command::new(python)
            .arg(workspace_root().join("tests/moto/server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{python}: {error}"));
        let (Some(questions), Some(answers)) = (server.stdin.take(), server.stdout.take()) else {
            panic!("the server has no pipes");
        };
        let mut moto = Self {
            server,
            questions: Some(questions),
            answers: BufReader::new(answers),
            has: Value::Null,
        };
        moto.has = moto.answer();
        Some(moto)
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &str {
        self.has["endpoint"].as_str().unwrap_or_default()
    }

    /// An operation of a service as boto3 names both, and what comes of it; refusals are under `error`.
    pub fn try_call(&mut self, service: &str, operation: &str, arguments: &Value) -> Value {
        self.ask(&json!({"service": service, "operation": operation, "arguments": arguments}))
    }

    /// The same where nothing may go wrong.
    pub fn call(&mut self, service: &str, operation: &str, arguments: &Value) -> Value {
        let answer = self.try_call(service, operation, arguments);
        assert!(answer["error"].is_null(), "{service} {operation}: {answer}");
        answer
    }

    /// From now on every request is held against the rights of who signed it. Key and secret of one who may do
    /// anything but these actions.
    pub fn deny(&mut self, actions: &[&str]) -> (String, String) {
        let key = self.ask(&json!({"deny": actions}));
        let part = |index: usize| key[index].as_str().unwrap_or_default().to_owned();
        (part(0), part(1))
    }

    /// What the SDK under test has asked so far: `service:Operation`, with ` DryRun` behind a request that is one.
    pub fn asked(&mut self) -> Vec<String> {
        let asked = self.ask(&json!({}));
        let asked = asked.as_array().cloned().unwrap_or_default();
        let by_us = asked.iter().filter(|it| {
            let agent = it[3].as_str().unwrap_or_default();
            agent.starts_with(OUR_SDK)
        });
        by_us
            .map(|it| {
                let text = |index: usize| it[index].as_str().unwrap_or_default();
                let suffix = if it[2] == true { " DryRun" } else { "" };
                format!("{}:{}{suffix}", text(0), text(1))
            })
            .collect()
    }

    fn ask(&mut self, question: &Value) -> Value {
        let written = self
            .questions
            .as_mut()
            .map(|pipe| writeln!(pipe, "{question}"));
        assert!(matches!(written, Some(Ok(()))), "moto's server is gone");
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        assert!(read.is_ok_and(|it| it > 0), "moto's server ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It ends with its input; a request that hangs must not keep it.
        drop(self.questions.take());
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
