# Everyday commands. Each is one cargo call, so none of them needs just.

demo:
    cargo run --release -- demo --until settled

test:
    cargo test --release --workspace

# The binary for images: half the size, half the pages in memory. Runs on glibc 2.36 and later (Debian 12).
dist:
    RUSTFLAGS="-C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs" cargo build --profile dist -p operator --bin mortise

pure:
    cargo test -p apis -p hooks -p scheduling -p state -p disruption -p cloudprovider -p parity -p solution-checker

lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

# Rebuilds the built-in policies from policies/ (needs a Wasm toolchain).
policies:
    cargo run -p guest-sdk --example build-policies
