# Everyday commands. Each is one cargo call, so none of them needs just.

demo:
    cargo run --release -- demo --until settled

test:
    cargo test --release --workspace

pure:
    cargo test -p apis -p scheduling -p state -p disruption -p cloudprovider -p parity -p solution-checker

lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

# Rebuilds the built-in policies from policies/ (needs a Wasm toolchain).
policies:
    cargo run -p guest-sdk --example build-policies
