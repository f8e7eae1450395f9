//! All memories of a guest share one limit.

use super::*;

#[test]
fn memories_share_one_limit() {
    let mut state = GuestState::new(100);
    // From, to, and whether that is granted.
    for (current, desired, granted) in [
        (0, 40, true),
        (0, 40, true),
        (0, 40, false),
        (40, 60, true),
        (40, 41, false),
    ] {
        let found = state.memory_growing(current, desired, None).unwrap();
        assert_eq!(found, granted, "{current} to {desired}");
    }
    assert_eq!((state.memory_bytes, state.memory_denied), (100, true));
}
