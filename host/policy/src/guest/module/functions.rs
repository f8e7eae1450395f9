//! How large the functions of a component are, before anybody compiles them.
//!
//! A compiler takes time that grows faster than a function: a body of half a megabyte, which is a few hundred
//! bytes packed, keeps it busy for seconds. Bytes that are no component have no functions; they are somebody
//! else's to refuse.

const PREAMBLE_BYTES: usize = 8;
/// The byte after the version: a module, or a component.
const LAYER: usize = 6;
/// Sections of a module.
const CODE: u8 = 10;
/// Sections of a component.
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;
/// Modules within components within components; more is nothing that a tool makes.
pub(super) const DEPTH_MAX: u32 = 8;

/// A component that holds others more deeply than anybody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NestedTooDeep;

/// Bytes of the largest function body, wherever it is.
pub(super) fn largest_bytes(component: &[u8]) -> Result<usize, NestedTooDeep> {
    largest(component, DEPTH_MAX)
}

fn largest(bytes: &[u8], depth: u32) -> Result<usize, NestedTooDeep> {
    let is_component = bytes.get(LAYER) == Some(&1);
    let mut rest = WasmReader(bytes.get(PREAMBLE_BYTES..).unwrap_or_default());
    let mut most = 0;
    while let Some((id, section)) = rest.section() {
        let found = match (is_component, id) {
            (false, CODE) => largest_body(section),
            (true, CORE_MODULE | COMPONENT) => {
                largest(section, depth.checked_sub(1).ok_or(NestedTooDeep)?)?
            }
            _ => 0,
        };
        most = most.max(found);
    }
    Ok(most)
}

fn largest_body(section: &[u8]) -> usize {
    let mut rest = WasmReader(section);
    let count = rest.number().unwrap_or(0);
    let bodies = (0..count).map_while(|_| rest.block());
    bodies.map(<[u8]>::len).max().unwrap_or(0)
}

struct WasmReader<'a>(&'a [u8]);

impl<'a> WasmReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn section(&mut self) -> Option<(u8, &'a [u8])> {
        Some((self.byte()?, self.block()?))
    }

    /// LEB128 of 32 bits.
    fn number(&mut self) -> Option<usize> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok();
            }
        }
        None
    }

    /// So many bytes as a number before them says.
    fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, NestedTooDeep, largest_bytes};

    #[test]
    fn the_largest_body_of_nested_modules_counts() {
        let small = wat::parse_str("(module (func) (func (drop (i32.const 7))))").unwrap();
        assert_eq!(largest_bytes(&small), Ok(5));
        let nested = "(component (core module (func)) (component (core module (func (drop (i32.const 7))))))";
        assert_eq!(largest_bytes(&wat::parse_str(nested).unwrap()), Ok(5));
    }

    #[test]
    fn what_is_nested_too_deep_to_be_looked_at_is_told() {
        let mut text = "(core module (func (drop (i32.const 7))))".to_owned();
        for depth in 1..12 {
            text = format!("(component {text})");
            let expected = if depth > DEPTH_MAX {
                Err(NestedTooDeep)
            } else {
                Ok(5)
            };
            let bytes = wat::parse_str(&text).unwrap();
            assert_eq!(largest_bytes(&bytes), expected, "{depth} components");
        }
    }

    #[test]
    fn what_is_no_component_has_no_functions() {
        for bytes in [
            &b""[..],
            b"\0asm",
            b"\0asm\x0d\0\x01\0\x01\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(largest_bytes(bytes), Ok(0));
        }
    }
}
