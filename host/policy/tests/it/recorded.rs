//! What is made of recorded calls: tables, and cases that hold for who answered.

use std::sync::Arc;

use policy::{CallRecorder, Cases, LaidOutResult, NoCases, RecordedLine};
use scheduling::ranking::RankHook;

use crate::support::{Lines, builtin, config_map, host, key, round};

#[test]
fn cases_and_tables_of_a_recorded_rule_say_what_it_answered() {
    let cluster = host();
    let lines = Arc::new(Lines::default());
    cluster.record_to(Arc::clone(&lines) as Arc<dyn CallRecorder>);
    let mut source = config_map("mine", "rank");
    let rule = r#"arch == "arm64" ? price * 0.5 : price"#;
    source.data.insert("rule".to_owned(), rule.to_owned());
    cluster.apply(&source);
    cluster.rank(&round());
    // A case is asked where nothing else is bound.
    let host = host();
    let lines = lines.0.lock().unwrap().clone();
    let made = host.cases_of(lines.clone(), None, 5).unwrap();
    assert_eq!((made.name.as_str(), made.cases), ("mine", 2), "{made:?}");
    assert!(made.is_tried && made.left_out.is_empty(), "{made:?}");
    let cases = Cases::parse(&made.text).unwrap();
    let faults = |rule: &str| {
        let mut source = source.clone();
        source.data.insert("rule".to_owned(), rule.to_owned());
        let outcomes = cases.run(&host, &source);
        outcomes.iter().map(|it| it.faults.len()).sum::<usize>()
    };
    assert_eq!(faults(rule), 0, "{}", made.text);
    assert!(faults("price") > 0);
    let unknown = host.cases_of(lines.clone(), Some("yours"), 5).unwrap_err();
    assert!(matches!(unknown, NoCases::Unknown { .. }), "{unknown}");
    // Another policy, asked about the same decision.
    host.apply(&builtin("other", "rank", "prefer-arm64"));
    let mut questions = lines.into_iter().filter_map(|line| match line {
        RecordedLine::Call(call) => Some(call.question),
        RecordedLine::Policy(_) => None,
    });
    let question = questions.next_back().unwrap();
    let laid_out = host.lay_out(&key("other"), &question).unwrap().only("web");
    let LaidOutResult::Claims(claims) = laid_out.result else {
        unreachable!("{laid_out:?}")
    };
    let best = &claims[0].offerings[0];
    assert_eq!(
        (claims.len(), best.instance_type.as_str()),
        (1, "m7g.large")
    );
    assert!(
        (best.score - 0.088).abs() < 1e-9 && (best.price - 0.11).abs() < 1e-9,
        "{best:?}"
    );
}
