//! Whether the `cel` crate reads expressions as they are read here: the grammar is CEL's, and not ours.

use cel::Env;
use cel::common::ast;

use super::{Expr, ExprKind, parse};
use crate::random::SplitMix;
use crate::rule::place::SourcePosition;

/// A tree as text; chains of `&&` and `||` flat, and numbers with their signs.
fn ours(expression: &Expr) -> String {
    let all = |parts: &[Expr]| parts.iter().map(ours).collect::<Vec<_>>().join(" ");
    match &expression.kind {
        ExprKind::Null => "null".to_owned(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Double(value) => format!("{value:?}"),
        ExprKind::Text(text) => format!("{text:?}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::List(items) => format!("[{}]", all(items)),
        ExprKind::Select {
            of,
            field,
            is_optional: false,
        } => format!("({}).{field}", ours(of)),
        ExprKind::Select { of, field, .. } => format!("(_?._ {} {field:?})", ours(of)),
        ExprKind::Index {
            of,
            key,
            is_optional,
        } => {
            let name = if *is_optional { "_[?_]" } else { "_[_]" };
            format!("({name} {} {})", ours(of), ours(key))
        }
        ExprKind::Call { name, args } => format!("({name} {})", all(args)),
        ExprKind::Method { of, name, args } => format!("({}).({name} {})", ours(of), all(args)),
        ExprKind::Not(of) => format!("(!_ {})", ours(of)),
        ExprKind::Negate(of) => match &of.kind {
            ExprKind::Int(value) => (-value).to_string(),
            ExprKind::Double(value) => format!("{:?}", -value),
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Name(_)
            | ExprKind::List(_)
            | ExprKind::Select { .. }
            | ExprKind::Index { .. }
            | ExprKind::Call { .. }
            | ExprKind::Method { .. }
            | ExprKind::Not(_)
            | ExprKind::Negate(_)
            | ExprKind::Binary(..)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::If(_) => format!("(-_ {})", ours(of)),
        },
        ExprKind::Binary("in", parts) => format!("(@in {})", all(&**parts)),
        ExprKind::Binary(sign, parts) => format!("(_{sign}_ {})", all(&**parts)),
        ExprKind::And(parts) => chain("_&&_", parts.iter().map(ours).collect()),
        ExprKind::Or(parts) => chain("_||_", parts.iter().map(ours).collect()),
        ExprKind::If(parts) => format!("(_?_:_ {})", all(&**parts)),
    }
}

/// A chain, whose links may be chains of the same kind.
fn chain(name: &str, parts: Vec<String>) -> String {
    let begin = format!("({name} ");
    let links = parts.into_iter().map(|part| {
        let inner = part
            .strip_prefix(&begin)
            .and_then(|it| it.strip_suffix(')'));
        inner.map_or_else(|| part.clone(), str::to_owned)
    });
    format!("{begin}{})", links.collect::<Vec<_>>().join(" "))
}

fn theirs(expression: &ast::IdedExpr) -> String {
    let all = |parts: &[ast::IdedExpr]| parts.iter().map(theirs).collect::<Vec<_>>();
    match &expression.expr {
        ast::Expr::Literal(literal) => match literal {
            ast::LiteralValue::Boolean(value) => value.inner().to_string(),
            ast::LiteralValue::Double(value) => format!("{:?}", value.inner()),
            ast::LiteralValue::Int(value) => value.inner().to_string(),
            ast::LiteralValue::UInt(value) => value.inner().to_string(),
            ast::LiteralValue::String(text) => format!("{:?}", text.inner()),
            ast::LiteralValue::Null => "null".to_owned(),
            ast::LiteralValue::Bytes(_) => "bytes".to_owned(),
        },
        ast::Expr::Ident(name) => name.clone(),
        ast::Expr::List(list) => format!("[{}]", all(&list.elements).join(" ")),
        ast::Expr::Select(select) => format!("({}).{}", theirs(&select.operand), select.field),
        ast::Expr::Call(call) => {
            let args = all(&call.args);
            match (&call.target, call.func_name.as_str()) {
                (Some(of), name) => format!("({}).({name} {})", theirs(of), args.join(" ")),
                (None, name @ ("_&&_" | "_||_")) => chain(name, args),
                // `-(1)` and `-1`, which is a literal, are the same.
                (None, "-_") if args[0].parse::<f64>().is_ok() => match args[0].strip_prefix('-') {
                    Some(number) => number.to_owned(),
                    None => format!("-{}", args[0]),
                },
                (None, name) => format!("({name} {})", args.join(" ")),
            }
        }
        ast::Expr::Unspecified
        | ast::Expr::Comprehension(_)
        | ast::Expr::Map(_)
        | ast::Expr::Struct(_) => "unexpected".to_owned(),
    }
}

fn read(text: &str) -> Result<Expr, String> {
    let mut faults = Vec::new();
    let parsed = parse(text, SourcePosition::line("rule", 1), &mut faults);
    parsed.ok_or_else(|| format!("{faults:?}"))
}

/// An expression by the grammar, no deeper than asked for.
fn made_up(random: &mut SplitMix, depth: u32) -> String {
    let one = |random: &mut SplitMix, of: &[&str]| {
        let at = random.below(u32::try_from(of.len()).unwrap());
        of[usize::try_from(at).unwrap()].to_owned()
    };
    let words = [
        "a",
        "labels",
        "config",
        "1",
        "0x1f",
        "2u",
        "1.5",
        ".5",
        "1e3",
        "2.5E-1",
        "true",
        "null",
        r#""x""#,
        "'it'",
        r"r'\d'",
        r#""\n\u00e9\x41\101""#,
        "'''a'b'''",
        r#""""q"q""""#,
    ];
    if depth == 0 {
        return one(random, &words);
    }
    let mut part = || made_up(random, depth - 1);
    let (first, second, third) = (part(), part(), part());
    match random.below(14) {
        0 => format!("({first})"),
        1 => format!("{first} ? {second} : {third}"),
        2 => format!("({first}) && {second} && ({third})"),
        3 => format!("{first} || ({second}) || {third}"),
        4 => format!("!({first})"),
        5 => format!("-({first})"),
        6 => format!("[{first}, {second},]"),
        7 => format!("({first}).f.?g"),
        8 => format!("a[{first}][?{second}]"),
        9 => format!("f({first}, {second})"),
        10 => format!("a.method({first})//comment\n.other()"),
        _ => {
            let signs = [
                "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in",
            ];
            let sign = one(random, &signs);
            let next = one(random, &signs);
            format!("({first}) {sign} {second} {next} ({third})")
        }
    }
}

#[test]
fn expressions_are_read_as_the_cel_crate_reads_them() {
    let env = Env::default();
    let mut accepted = 0;
    for seed in 0..1500 {
        let text = made_up(&mut SplitMix::new(seed), seed % 4);
        match (read(&text), env.parser().parse(&text)) {
            (Ok(read), Ok(known)) => {
                accepted += 1;
                assert_eq!(ours(&read), theirs(&known), "{text}");
            }
            (Err(_), Err(_)) => {}
            (read, known) => {
                let (read, known) = (read.map(|it| ours(&it)), known.map(|it| theirs(&it)));
                panic!("{text}: {read:?} and {known:?}");
            }
        }
    }
    // Conditionals in conditionals are none without parentheses.
    assert!(accepted > 1000, "{accepted} texts were expressions");
}

#[test]
fn what_is_read_of_words_in_any_order_is_cel() {
    let words = [
        "a", "1", "2.5", "'x'", "+", "-", "!", "*", "==", "<", "in", "&&", "||", "?", ":", "(",
        ")", "[", "]", ".", ",", ".b", ".c(", "true", " ", "f(",
    ];
    let env = Env::default();
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut random = SplitMix::new(seed);
        let count = 1 + random.below(7);
        let text: String = (0..count).map(|_| random.among(&words)).collect();
        let Ok(read) = read(&text) else { continue };
        accepted += 1;
        match env.parser().parse(&text) {
            Ok(known) => assert_eq!(ours(&read), theirs(&known), "{text}"),
            Err(error) => panic!("{text} is read as {}: {error}", ours(&read)),
        }
    }
    assert!(accepted > 500, "{accepted} texts were expressions");
}
