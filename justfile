# What people do all day. Each recipe is a command or two that work without just: `just --show NAME` prints them.

set shell := ["bash", "-cu"]

# What runs as Mortise. `just mortise=mortise plan web.yaml` takes the one on the PATH instead of building.
mortise := "cargo run --quiet --release --"

# The recipes.
default:
    @just --list --unsorted

# --- Edit and look ---

# Whether a crate compiles: a second after an edit of a pure crate. `just check state`
check crate="scheduling":
    cargo check -p {{crate}}

# The tests of a crate whose names hold a word: `just one disruption budgets`
one crate word:
    cargo test -p {{crate}} {{word}}

# Scheduling rules whose names hold all the words: `just case spread zonal`
case *words:
    cargo test -p parity --test cases -- {{words}}

# Stories of the controllers against the simulated API server: `just story nominations`
story word:
    cargo test -p controllers --test it {{word}}

# All that is pure: no async, cloud or Wasm.
pure:
    cargo test -p apis -p hooks -p scheduling -p state -p planning -p problem-file -p convert -p shadow -p disruption -p parity -p solution-checker

# What is not for every day, optimised: more random worlds, larger problems, the invariants of every story. CI runs it, too.
deep:
    cargo test --release -p scheduling -p disruption

lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --release --workspace

# On a cluster that is not ours, with kwok for kubelets and no other autoscaler of nodes: `just on-cluster ~/.kube/config`
on-cluster kubeconfig:
    KUBECONFIG={{kubeconfig}} cargo test --release -p tests --features cluster

# The book, as target/book/index.html.
book:
    .ci/book

# --- Run and look ---

demo *flags:
    {{mortise}} demo --until settled {{flags}}

# A simulated cluster to use kubectl on: `kubectl --kubeconfig k get nodes`
cluster kubeconfig="k":
    {{mortise}} demo --until forever --listen 127.0.0.1:0 --kubeconfig-out {{kubeconfig}}

# The plan for manifests, and why pods have no place: `just plan web.yaml`
plan manifests *flags:
    {{mortise}} simulate -f {{manifests}} --explain --timing {{flags}}

# One world, kept as a problem file: `just world problem.json --instance-types types.json --disruption`
world problem *flags:
    {{mortise}} simulate --problem {{problem}} --explain --timing {{flags}}

# Whether two builds decide the same, line by line, down to the hash of the ledger: `just ledgers old/mortise new/mortise`
ledgers old new *flags:
    diff <({{old}} demo {{flags}} 2>&1 | grep -vE ' of yours| calls, ') <({{new}} demo {{flags}} 2>&1 | grep -vE ' of yours| calls, ') && echo same

# --- Measure ---

# Time, memory and bill of a solve of generated pods (plain, fleet, diverse, prefs or groups): `just solve diverse 1 2000`
solve family="fleet" seed="1" pods="5000" *flags:
    cargo run --quiet --release -p solution-checker --example solve -- {{family}} {{seed}} {{pods}} quiet {{flags}}

# Where a solve spends its time; needs perf.
profile family="fleet" seed="1" pods="5000" repeats="20":
    cargo build --release -p solution-checker --example solve
    perf record -q -F 999 -o "${CARGO_TARGET_DIR:-target}/solve.perf" "${CARGO_TARGET_DIR:-target}/release/examples/solve" {{family}} {{seed}} {{pods}} quiet repeats={{repeats}}
    perf report --stdio --percent-limit 1 -i "${CARGO_TARGET_DIR:-target}/solve.perf"

# Fleets as Deployments, in the demo or with `--kubeconfig FILE` on a cluster, beside one solve and the goals: `just fleet --pods 500 --seeds 5`
fleet *flags:
    cargo build --release -p operator -p fleet
    "${CARGO_TARGET_DIR:-target}/release/fleet" "${CARGO_TARGET_DIR:-target}/release/mortise" {{flags}}

# The solver's goals beside what is measured; with a folder of problem files, those too.
goals *folder:
    cargo run --quiet --release -p solution-checker --example solve -- table {{folder}}

# --- Make ---

# The binary for images: half the size, and few of its pages in memory. Runs on glibc 2.36 and later (Debian 12).
dist:
    MORTISE_COMMIT="$(git rev-parse --short=7 HEAD)" RUSTFLAGS="-C link-arg=-Wl,-z,pack-relative-relocs" \
      CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER="$PWD/dist/link-twice" \
      cargo build --profile dist -p operator --bin mortise

# The verbs of those who write policies, alone.
author:
    cargo build --profile author -p authoring --bin mortise-policy

# Rebuilds the built-in policies from policies/ (needs a Wasm toolchain).
policies:
    cargo run -p guest-sdk --example build-policies

# Writes the tables of the code anew: outcomes, metrics, settings, the chart's copies of the CRDs, rules of roles and environment.
tables:
    table="$(cargo run -q -p state --example outcomes)" && printf '%s\n' "$table" > host/state/OUTCOMES.md
    page="$(cargo run -q -p state --example outcomes docs/troubleshooting.md)" && printf '%s\n' "$page" > docs/troubleshooting.md
    page="$(cargo run -q -p controllers --example metrics docs/metrics.md)" && printf '%s\n' "$page" > docs/metrics.md
    cargo run -p apis --example crds -- charts/mortise/crds
    MORTISE_WRITES_TABLES=1 cargo test -p aws ami_family::tests
    cargo run -p controllers --example rbac -- charts/mortise/templates/_rules.tpl
    MORTISE_WRITES_TABLES=1 cargo test -p operator --bin mortise settings_tables::what_is_made_of_the_flags_is_fresh
