//! What the linker of `just dist` goes by: which functions of a program run.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::{has_program, mortise};

#[test]
fn functions_that_ran_are_told_and_the_program_is_none_the_wiser() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: only programs of x86-64 are laid out");
        return;
    }
    if !has_program("cc", "--version") {
        return;
    }
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist");
    let folder = std::env::temp_dir().join(format!("mortise-layout-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (touched, order) = (folder.join("touched"), folder.join("order"));
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&touched, &dist.join("touched.c")])
        .status();
    assert!(compiled.unwrap().success());

    let run = |arguments: &[&str]| {
        let mut command = Command::new(&touched);
        let output = command.arg(&order).arg(mortise()).args(arguments).output();
        (output.unwrap(), fs::read_to_string(&order).unwrap())
    };
    let (simulated, symbols) = run(&["demo", "--pods", "20", "--until", "settled"]);
    let text = String::from_utf8(simulated.stdout).unwrap();
    assert!(text.contains("20 pods run on"), "{text}");
    for function in ["7mortise4demo", "8wasmtime"] {
        assert!(symbols.contains(function), "no function of {function}");
    }
    assert!(!symbols.contains("7mortise6doctor"), "no doctor was asked");

    let (refused, _) = run(&["demo", "--pods", "many"]);
    assert_eq!(refused.status.code(), Some(2));
    fs::remove_dir_all(&folder).unwrap();
}
