//! What somebody may write into a ConfigMap to make its check costly, and what is said of it.

use std::collections::BTreeMap;

/// A rule, and what is said of it; nothing where it is let in, because it costs little.
#[derive(Debug)]
pub(crate) struct Costly {
    pub(crate) name: &'static str,
    pub(crate) data: BTreeMap<String, String>,
    pub(crate) words: &'static str,
}

fn of_key(key: &str, name: &'static str, text: &str, words: &'static str) -> Costly {
    let data = [("rule", "price"), (key, text)];
    Costly {
        name,
        data: data
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into(),
        words,
    }
}

fn of_rule(name: &'static str, text: &str, words: &'static str) -> Costly {
    of_key("rule", name, text, words)
}

/// The texts that a function makes of numbers, one after another.
fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().concat()
}

pub(crate) fn list(items: usize) -> String {
    format!("[{}]", vec!["1"; items].join(","))
}

/// `exists` in `exists`, each over a list that names the variable of the one before twice.
fn nested(first: &str, depth: usize) -> String {
    let begin = each(depth - 1, |it| {
        format!("[a{it}+a{it}].exists(a{}, ", it + 1)
    });
    let (last, end) = (depth - 1, ")".repeat(depth));
    format!("[{first}].exists(a0, {begin}a{last} == a{last}{end} ? 1 : 2")
}

fn of_lists(items: usize, depth: usize) -> String {
    let begin = each(depth, |it| format!("{}.map(x{it}, ", list(items)));
    format!("size({begin}cpu_milli{})", ")".repeat(depth))
}

const DEEP: &str = "nested deeper than 96 levels";
const STEPS: &str = "takes more than 2000 steps for one offering";

/// Trees that are deep, in each way in which the grammar lets them be.
fn deep() -> Vec<Costly> {
    let around = |open: &str, close: &str| {
        let (open, close) = (open.repeat(2000), close.repeat(2000));
        format!("{open}1{close}")
    };
    let sum = vec!["1"; 2000].join("+");
    let after = |first: &str, part: &str, count| format!("{first}{}", part.repeat(count));
    let ninety = "+1".repeat(90);
    let on_each_other = each(4, |it| format!("v{}: v{it}{ninety}\n", it + 1));
    vec![
        of_key(
            "variables",
            "variables on variables",
            &format!("v0: 1\n{on_each_other}"),
            "build on each other more than 256 levels deep",
        ),
        of_rule("a sum", &sum, DEEP),
        of_rule("fields", &after("config", ".a", 2000), DEEP),
        of_rule("keys", &after("config", "[0]", 1300), DEEP),
        of_rule("methods", &after("zone", ".trim()", 500), DEEP),
        of_rule("parentheses", &around("(", ")"), DEEP),
        of_rule("lists", &around("[", "]"), DEEP),
        of_rule("conditionals", &after("1", "==1?1:1", 500), DEEP),
        of_rule(
            "unclosed",
            &"(".repeat(90),
            "the end where a value is expected",
        ),
        // Even numbers of these are nothing at all, and odd ones are one.
        of_rule("nots", &format!("{}true ? 1 : 2", "!".repeat(4000)), ""),
        of_rule(
            "minuses",
            &format!("{}1", "-".repeat(4001)),
            "is not a finite cost",
        ),
        // Chains of these are flat.
        of_rule("ands", &format!("{}true ? 1 : 2", "true&&".repeat(600)), ""),
    ]
}

/// Names for what is named, again and again.
fn doubling() -> Vec<Costly> {
    let doubled = each(31, |it| format!("v{}: v{it} + v{it}\n", it + 1));
    let doubled = format!("v0: zone\n{doubled}");
    let mut used = of_rule(
        "variables that double, used",
        "size(v31)",
        "for one offering",
    );
    used.data.insert("variables".to_owned(), doubled.clone());
    vec![
        of_rule("ints that double", &nested("1", 24), ""),
        of_rule("strings that double", &nested("zone", 40), STEPS),
        of_key("variables", "variables that double", &doubled, ""),
        used,
        of_rule("loops in loops", &of_lists(60, 6), STEPS),
        of_rule("lists of lists", &of_lists(400, 2), STEPS),
        of_rule(
            "a text that grows",
            &format!(
                "size(\"{}\".replace(\"a\", \"{}\"))",
                "a".repeat(900),
                "b".repeat(900)
            ),
            "for one offering",
        ),
    ]
}

/// Much of everything.
fn large() -> Vec<Costly> {
    let lines = |line: &str, count: usize| vec![line; count].join("\n");
    let one_of_many = "price < 0 && price < 0 && price < 0";
    let variables = each(300, |it| format!("a{it}: 1\n"));
    let unknown = format!("0{}", "+unknown".repeat(90));
    vec![
        of_rule("unknown words", &unknown, "and 80 more"),
        of_rule(
            "a long text",
            &format!("size(\"{}\")", "x".repeat(5000)),
            "may have 4096",
        ),
        of_key(
            "variables",
            "many variables",
            &variables,
            "there may be 32 variables",
        ),
        of_key(
            "exclude",
            "many exclusions",
            &lines("price < 0", 65),
            "there may be 64 lines",
        ),
        of_key(
            "exclude",
            "much text",
            &lines(one_of_many, 600),
            "may have 16384",
        ),
    ]
}

fn patterns() -> Vec<Costly> {
    let matching = |pattern: &str| format!("zone.matches(\"{pattern}\") ? 1 : 2");
    let lines = vec!["zone.matches(\"a{1,9}\")"; 17].join("\n");
    let deep = matching(&format!("{}{}", "(".repeat(100), ")".repeat(100)));
    vec![
        of_key(
            "exclude",
            "many patterns",
            &lines,
            "there may be 16 patterns",
        ),
        of_rule(
            "a large pattern",
            &matching("(a{1,99}){1,99}"),
            "too large; repeat less",
        ),
        of_rule("a deep pattern", &deep, "not a pattern"),
        of_rule(
            "a long pattern",
            &matching(&"a?".repeat(200)),
            "may have 256",
        ),
        of_rule(
            "patterns without end",
            "zone.matches(instance_type + string(price)) ? 1 : 2",
            "more than 16 different patterns in one call",
        ),
    ]
}

fn settings() -> Vec<Costly> {
    let with = |mut costly: Costly, config: String| {
        costly.data.insert("config".to_owned(), config);
        costly
    };
    let large = format!("{{\"blob\": \"{}\"}}", "ab".repeat(450_000));
    let (blob, part) = ("a".repeat(30_000), "a".repeat(15_000));
    let medium = format!("{{\"blob\": \"{blob}b\", \"part\": \"{part}b\"}}");
    let searching = "config.blob.contains(config.part) ? 1 : 2";
    vec![
        with(
            of_rule(
                "large settings",
                "price",
                "data.config: has 900011 bytes, and a rule reads up to 65536",
            ),
            large,
        ),
        with(of_rule("settings searched", searching, STEPS), medium),
    ]
}

/// As much as is let in.
fn at_the_limit() -> Vec<Costly> {
    let (few, more) = (list(10), list(130));
    let nine = list(9);
    vec![
        of_rule(
            "turns of a loop",
            &format!("{more}.map(a, a * 2 + a * 3).sum() + price"),
            "",
        ),
        of_rule(
            "lists made of lists",
            &format!("size({nine}.map(a, {nine}.map(b, [a, b])))"),
            "",
        ),
        of_rule(
            "strings made of strings",
            &format!("size({few}.map(a, zone.split(\"\").join(\"-\")))"),
            "",
        ),
        of_rule(
            "patterns at work",
            &format!("{few}.exists(a, zone.matches(\"^(a|b|[^-]*-)+[x-z]$\")) ? price : price + 1"),
            "",
        ),
        of_rule(
            "times",
            &format!(
                "{}.map(a, now.getDayOfYear(\"Europe/Berlin\")).sum()",
                list(80)
            ),
            "",
        ),
    ]
}

/// All of them.
pub(crate) fn costly() -> Vec<Costly> {
    let all = [
        deep(),
        doubling(),
        large(),
        patterns(),
        settings(),
        at_the_limit(),
    ];
    all.into_iter().flatten().collect()
}
