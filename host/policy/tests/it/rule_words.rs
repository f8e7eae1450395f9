//! The language of rules: what its words give, and what is said of those that are wrong.

use policy::BindingState;
use scheduling::ranking::RankHook;

use crate::rules::{ranked, rule};
use crate::support::{host, key, round};

/// Settings that the expressions below read.
const CONFIG: &str = r#"
performance: {m7i: 1.0, m7g: 1.25}
zones: {us-east-1a: {m7g: 0.5}}
families: [m7g, r7g]
patterns: ["^c[0-9]", "^m[0-9]g"]
tiers: [10, 20, 30]
nothing: null
mixed: {a: 1, b: x}
"#;

/// What costs as much for both rows of the table, m7i.large (amd64) and m7g.large (arm64), on Monday, 5 January 2026,
/// at noon UTC.
const GIVES: &[(&str, f64)] = &[
    // Keys that are computed, and what is not there.
    (r#"config.performance[family == "" ? "m7i" : "m7g"]"#, 1.25),
    (r#"config.performance["t3" + zone]"#, f64::NAN),
    (
        r#"config.performance[zone].orValue(2) + config.performance[?"t3"].orValue(1.0)"#,
        3.0,
    ),
    ("config.?other.orValue(3)", 3.0),
    (r#"config.zones[zone]["m7g"]"#, 0.5),
    ("config.zones[zone].m7g", 0.5),
    ("config.tiers[1]", 20.0),
    ("config.tiers[7].orValue(1)", 1.0),
    (
        "has(config.performance) && !has(config.other.deeper) ? 1 : 2",
        1.0,
    ),
    (
        r#""m7g" in config.performance && !("t3" in config.performance) ? 1 : 2"#,
        1.0,
    ),
    // Labels: those claims have none.
    (r#"has(labels.team) || "team" in labels ? 1 : 2"#, 2.0),
    (r#"labels["team"] == "x" ? 1 : 2"#, 2.0),
    (r#"labels["team"] != "x" ? 1 : 2"#, 1.0),
    (r#"!(labels.team in ["x", "y"]) ? 1 : 2"#, 1.0),
    (r#"labels.team.startsWith("") ? 1 : 2"#, 2.0),
    (r#"labels[?"team"].orValue("x") == "x" ? 1 : 2"#, 1.0),
    (r#"labels.?team.orValue("x") == "x" ? 1 : 2"#, 1.0),
    (
        r#"labels.?team.or(labels.?squad).orValue("y") == "y" ? 1 : 2"#,
        1.0,
    ),
    ("labels.?team.optMap(t, size(t)).orValue(7)", 7.0),
    (r#"double(labels["factor"]) * 2.0"#, f64::NAN),
    (r#"labels["a" + "b"] == labels["ab"] ? 1 : 2"#, 2.0),
    // Lists.
    (r#"config.families.exists(f, f == "r7g") ? 1 : 2"#, 1.0),
    (
        r#"config.families.exists_one(f, f.startsWith("m")) ? 1 : 2"#,
        1.0,
    ),
    (r#"config.families.all(f, f.endsWith("7g")) ? 1 : 2"#, 1.0),
    ("config.tiers.filter(t, t > 10).map(t, t * 2).sum()", 100.0),
    ("config.tiers.map(t, t > 10, t + 1).sum()", 52.0),
    ("[1, 2.5].sum() + [3, 1].max() + min([4, 2])", 8.5),
    (
        "config.performance.map(f, config.performance[f]).sum()",
        2.25,
    ),
    (
        "[1, 2].exists(a, [3, 4].exists(b, a + b == 6)) ? 1 : 2",
        1.0,
    ),
    ("[].sum() + size([1, 2]) + size(config.performance)", 4.0),
    ("[1, 2] == [1, 2.0] ? 1 : 2", 1.0),
    ("cel.bind(x, 3, x * x + x)", 12.0),
    // Texts.
    (
        r#"size("Ab".lowerAscii() + "c".upperAscii() + " d ".trim())"#,
        4.0,
    ),
    (
        r#""a-b-c".replace("-", "+") == "a+b+c" && "a-b-c".replace("-", "", 1) == "ab-c" ? 1 : 2"#,
        1.0,
    ),
    (
        r#"int(instance_type.split(".")[1] == "large" ? "5" : "6")"#,
        5.0,
    ),
    (r#""a,b,c".split(",", 2)[1] == "b,c" ? 1 : 2"#, 1.0),
    (
        r#""grüße".substring(2, 4) == "üß" && "abc".substring(1) == "bc" ? 1 : 2"#,
        1.0,
    ),
    (
        r#""grüße".indexOf("e") + "abcabc".indexOf("b", 2) + "abab".lastIndexOf("b") + "a".indexOf("z")"#,
        10.0,
    ),
    (
        r#""abc".charAt(1) == "b" && "abc".charAt(3) == "" ? 1 : 2"#,
        1.0,
    ),
    (
        r#"config.families.join("/") == "m7g/r7g" && ["a", "b"].join() == "ab" ? 1 : 2"#,
        1.0,
    ),
    (
        r#""%s %d %.2f%% %f".format(["x", 3, 1.005, 2]) == "x 3 1.00% 2.000000" ? 1 : 2"#,
        1.0,
    ),
    (
        r#"string(1.5) + string(true) + string(7) == "1.5true7" ? 1 : 2"#,
        1.0,
    ),
    (
        r#"double("1e1") + int("-3") + double("x").orValue(1.0)"#,
        8.0,
    ),
    // Patterns.
    (
        r#""m7g".matches("^m\\d+g$") && !"xm".matches(r"^\w{3}") ? 1 : 2"#,
        1.0,
    ),
    (
        r#"config.patterns.exists(p, "m7g".matches(p)) ? 1 : 2"#,
        1.0,
    ),
    // Quantities and durations are doubles, in units and seconds.
    (r#"quantity("1Gi") / quantity("1Mi")"#, 1024.0),
    (r#"quantity("500m")"#, 0.5),
    (r#"duration("1h30m") / 60"#, 90.0),
    (r#"ice_age > duration("24h") ? 1 : 2"#, 1.0),
    // Time.
    ("now.getHours() * 100 + now.getMinutes()", 1200.0),
    (
        r#"now.getHours("+05:30") * 100 + now.getMinutes("+05:30")"#,
        1730.0,
    ),
    (
        "now.getDayOfWeek() * 100 + now.getDayOfMonth() * 10 + now.getMonth()",
        140.0,
    ),
    ("now.getDate() + now.getDayOfYear() + now.getSeconds()", 9.0),
    ("now.getFullYear() - 2000", 26.0),
    (
        "(year - 2000) * 1000000 + month * 10000 + day * 100 + hour",
        26_010_512.0,
    ),
    ("weekday * 100 + minute", 0.0),
    (r#"timestamp("2026-01-05T13:00:00Z") - now"#, 3600.0),
    (
        r#"now + duration("2h") > timestamp("2026-01-05T13:59:59Z") ? 1 : 2"#,
        1.0,
    ),
    (r#"(now - duration("12h")).getDate()"#, 5.0),
    // Numbers as CEL writes them.
    ("0x1F + 1u + 2e0 + .5", 34.5),
    ("--1 - -1", 2.0),
    ("7 % 4 * 2", 6.0),
    ("2 + 3 * 4 - 6 / 4", 12.5),
    ("1 < 2 == true ? 1 : 2", 1.0),
    ("false ? 1 : true ? 2 : 3", 2.0),
    (
        "round(1.4) + trunc(1.9) + floor(-0.5) + ceil(0.5) + abs(-2)",
        4.0,
    ),
    (
        r"size('it\'s') + size(r'\n') + size('''a'b''') + size('\u00fc\x41\101')",
        12.0,
    ),
];

#[test]
fn expressions_give_what_cel_says() {
    for (text, expected) in GIVES {
        let ranking = ranked(&[("rule", text), ("config", CONFIG)]);
        // What is absent leaves the price of before.
        let expected = if expected.is_nan() { 0.10 } else { *expected };
        let found = ranking.scores[0];
        assert!((found - expected).abs() < 1e-9, "{text} gives {found}");
    }
}

#[test]
fn zones_of_the_tz_database_are_known() {
    let ranking = ranked(&[("rule", r#"now.getHours("Europe/Berlin")"#)]);
    assert!((ranking.scores[0] - 13.0).abs() < 1e-9, "{ranking:?}");
}

#[test]
fn what_only_one_claim_lacks_is_decided_for_that_claim_alone() {
    let mut asked = round();
    let team = u32::try_from(asked.table.symbols.len()).unwrap();
    let words = ["team", "shop"].map(str::to_owned);
    asked.table.symbols.extend(words);
    asked.claims[1].labels = vec![(team, team + 1)];
    let host = host();
    let status = host.apply(&rule(
        "rank",
        &[
            ("rule", r#"labels["team"] == "shop" ? price * 2 : price"#),
            ("exclude", r#"labels["team"] == "shop" && arch == "arm64""#),
        ],
    ));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let answer = host.rank(&asked);
    assert_eq!(answer.uses[0].outcome.as_str(), "ok");
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11]);
    assert_eq!(answer.rankings[1].scores, [0.20, 0.22]);
    assert!(answer.rankings[0].excluded.is_empty());
    assert_eq!(answer.rankings[1].excluded.len(), 1);
}

#[test]
fn variables_have_names_and_are_used_everywhere() {
    let ranking = ranked(&[
        (
            "variables",
            "is_ours: arch == \"amd64\"\n// twice\ntwice: price * 2\nfour: twice + variables.twice\n",
        ),
        ("rule", "is_ours ? four : variables.twice"),
        ("exclude", "!is_ours && twice > 0.2\n"),
        ("message", r#"arch + " is not ours""#),
    ]);
    assert!((ranking.scores[0] - 0.4).abs() < 1e-12, "{ranking:?}");
    assert!((ranking.scores[1] - 0.22).abs() < 1e-12, "{ranking:?}");
    assert_eq!(ranking.excluded, [(1, "arm64 is not ours".to_owned())]);
}

/// Key, expression and what is said of it.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "rule",
        "prise * 2",
        "data.rule: line 1 column 1: unknown variable `prise`; did you mean `price`?",
    ),
    (
        "rule",
        "price *",
        "line 1 column 8: the end where a value is expected",
    ),
    (
        "rule",
        "price\n  + zoom",
        "line 2 column 5: unknown variable `zoom`; did you mean `zone`?",
    ),
    (
        "rule",
        "price + zone",
        "line 1 column 7: double and string cannot be computed with",
    ),
    ("rule", "zone == 1", "string cannot be compared with int"),
    (
        "rule",
        "zone",
        "the expression gives string, and double is wanted",
    ),
    (
        "rule",
        "null",
        "the expression gives null, and double is wanted",
    ),
    (
        "rule",
        "price > 1 ? 1 : \"x\"",
        "one branch gives int, the other string",
    ),
    (
        "rule",
        "price > 1 ? 1 : ",
        "line 1 column 16: the end where a value is expected",
    ),
    ("rule", "cost(price)", "unknown global function `cost`"),
    (
        "rule",
        "zone.lower() == \"\" ? 1 : 2",
        "unknown function `lower`; there are size, startsWith",
    ),
    (
        "rule",
        "zone.sizes()",
        "unknown function `sizes`; did you mean `size`?",
    ),
    (
        "rule",
        "zone.replace(\"a\") == \"\" ? 1 : 2",
        "it is written string.replace(string, string, int); the last one may",
    ),
    (
        "rule",
        "zone.substring(zone) == \"\" ? 1 : 2",
        "string stands where int is wanted",
    ),
    ("rule", "labels == 1 ? 1 : 2", "use labels[\"key\"]"),
    (
        "rule",
        "labels.?team == \"x\" ? 1 : 2",
        "optional(string) cannot be compared with string; say what stands in",
    ),
    (
        "rule",
        "config.missing * 2",
        "there is no field `missing` here; there are families, mixed, nothing, ",
    ),
    ("rule", "config.familys", "did you mean `families`?"),
    (
        "rule",
        "config.performance[\"t3\"]",
        "there is no field `t3` here; there are m7g, m7i",
    ),
    (
        "rule",
        "config.mixed[zone]",
        "the values of this map are of several types",
    ),
    ("rule", "price.zone", "double has no field `zone`"),
    (
        "rule",
        "[1, \"x\"].size()",
        "the items of a list are of one type, and not int, string",
    ),
    (
        "rule",
        "zone in [1, 2] ? 1 : 2",
        "string cannot be in list(int)",
    ),
    (
        "rule",
        "[1, 2].map(1, 2).sum()",
        "the name of a variable is expected here",
    ),
    (
        "rule",
        "{\"a\": 1}[\"a\"]",
        "rules write no maps; put one into data.config",
    ),
    (
        "rule",
        "zone.matches(\"(\") ? 1 : 2",
        "not a pattern: unclosed group",
    ),
    (
        "rule",
        "quantity(\"1Gb\")",
        "invalid quantity \"1Gb\"; write one such as \"64Gi\"",
    ),
    ("rule", "duration(\"1d\")", "write one such as \"1h30m\""),
    (
        "rule",
        "timestamp(\"tomorrow\") > now ? 1 : 2",
        "\"tomorrow\" is no timestamp",
    ),
    (
        "rule",
        "now.getHours(\"Europe/Berlni\")",
        "there is no zone \"Europe/Berlni\"",
    ),
    ("rule", "now.getHours(zone)", "the zone must be written out"),
    (
        "rule",
        "price = 1",
        "line 1 column 7: `=` is no sign here; compare with `==`",
    ),
    (
        "rule",
        "price > 1 & true ? 1 : 2",
        "`&` is no sign here; write `&&`",
    ),
    ("rule", "\"abc", "the string has no closing \""),
    ("rule", "size(\"\\q\")", "`\\q` is no escape"),
    (
        "rule",
        "price * 2)",
        "`)` where the end of the expression, or an operator is expected",
    ),
    ("rule", "if", "`if` where a value is expected"),
    (
        "rule",
        "99999999999999999999",
        "99999999999999999999 is too large for an int",
    ),
    (
        "exclude",
        "price < 1\nzone",
        "data.exclude: line 2 column 1: the expression gives string, and bool is",
    ),
    (
        "exclude",
        "price < 1\n  zone == 3 // x",
        "data.exclude: line 2 column 8: string cannot be compared",
    ),
    (
        "variables",
        "a price",
        "data.variables: line 1 column 1: a variable is written as `name: expression`",
    ),
    (
        "variables",
        "a: 1\na: 2",
        "data.variables: line 2 column 1: `a` is there already",
    ),
    ("variables", "zone: 1", "`zone` is there already"),
    ("variables", "a-b: 1", "\"a-b\" is no name"),
    (
        "variables",
        "a: b\nb: 1",
        "data.variables: line 1 column 4: unknown variable `b`",
    ),
    (
        "message",
        "price",
        "data.message: line 1 column 1: the expression gives double, and string is wanted",
    ),
    (
        "applies-to",
        "all",
        "data.applies-to: only consolidation rules judge moves",
    ),
    // What only values tell.
    ("rule", "price - 100", "is not a finite cost"),
    ("rule", "price / gpus", "is not a finite cost"),
    (
        "rule",
        "cpu_milli % gpus",
        "data.rule: line 1 column 11: division by zero",
    ),
    (
        "rule",
        "9223372036854775807 + pods",
        "data.rule: line 1 column 21: the int is too large",
    ),
    // A slip of the sign.
    (
        "rule",
        "1000 - price",
        "the dearer an offering, the less it costs by this policy",
    ),
];

#[test]
fn a_wrong_rule_is_refused_with_its_place() {
    let host = host();
    for &(name, text, words) in WRONG {
        // What else a rule must have.
        let rest = [("config", CONFIG), ("rule", "price"), (name, text)];
        let status = host.apply(&rule("rank", &rest));
        assert_eq!(status.state, BindingState::Degraded, "{text}: {status:?}");
        assert!(status.message.contains(words), "{text}: {}", status.message);
        assert_eq!(host.rank(&round()).uses[0].name, "default-rank");
    }
}

#[test]
fn kinds_have_their_own_words() {
    let host = host();
    for (kind, data, words) in [
        (
            "consolidation",
            ("rule", "savings"),
            "gives double, and bool is wanted",
        ),
        (
            "consolidation",
            ("rule", "prior > 1"),
            "unknown variable `prior`",
        ),
        (
            "consolidation",
            ("applies-to", "drifted"),
            "\"drifted\" is no kind of move; use delete, replace,",
        ),
        (
            "consolidation",
            ("message", "\"x\""),
            "data.rule: there is none",
        ),
        (
            "budgets",
            ("rule", "total > 1"),
            "gives bool, and double is wanted",
        ),
        (
            "budgets",
            ("exclude", "total > 1"),
            "only rank rules exclude",
        ),
        ("full", ("rule", "price"), "a rule is for one kind"),
    ] {
        let status = host.apply(&rule(kind, &[data]));
        assert_eq!(status.state, BindingState::Degraded, "{data:?}: {status:?}");
        assert!(
            status.message.contains(words),
            "{data:?}: {}",
            status.message
        );
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let status = host().apply(&rule(
        "rank",
        &[
            ("variables", "a: prise\nb: 1 +"),
            ("rule", "a * zoom + cost(familly)\n  + zone"),
            ("exclude", "arch\nprice ="),
        ],
    ));
    assert_eq!(status.reason, "InvalidRule");
    for words in [
        "data.variables: line 1 column 4: unknown variable `prise`",
        "data.variables: line 2 column 7: the end",
        "data.rule: line 1 column 5: unknown variable `zoom`",
        "data.rule: line 1 column 12: unknown global function `cost`",
        "data.rule: line 1 column 17: unknown variable `familly`; did you mean `family`?",
        "data.exclude: line 1 column 1: the expression gives string",
        "data.exclude: line 2 column 7: `=` is no sign here",
    ] {
        assert!(
            status.message.contains(words),
            "{words}: {}",
            status.message
        );
    }
}

#[test]
fn a_rule_that_is_not_monotone_is_noted() {
    let host = host();
    let status = host.apply(&rule("rank", &[("rule", "price < 0.05 ? 10 : price")]));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let status = host.status(&key("mine")).unwrap();
    assert!(
        status
            .message
            .contains("note: a higher price lowered the cost of a row"),
        "{}",
        status.message
    );
}
