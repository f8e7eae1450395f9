//! Guest SDK
