# The image that the chart runs: the binary of `just dist` with a list of its crates inside, on a base that has glibc
# and CA certificates, no shell and no root.
#
#   docker buildx build --platform linux/amd64 --build-arg COMMIT="$(git rev-parse --short=7 HEAD)" \
#     --tag REGISTRY/mortise:TAG --push .
#
# Each architecture is built on a machine of its own kind: the built-in policies are compiled for the machine that
# builds. `docker buildx imagetools create` joins the two to one image, as .github/workflows/release.yml does.

FROM rust:1.95-bookworm AS build
RUN cargo install cargo-auditable --version 0.7.7 --locked
WORKDIR /src
COPY . .
# What logs and karpenter_build_info say was built; no repository comes along to ask.
ARG COMMIT=""
# The linker of other machines than x86-64 is not lld, which alone knows this; justfile has it too.
RUN if [ "$(uname -m)" = x86_64 ]; then \
      export RUSTFLAGS="-C link-arg=-Wl,-z,pack-relative-relocs" \
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=/src/dist/link-twice; \
    fi \
 && MORTISE_COMMIT="$COMMIT" cargo auditable build --locked --profile dist -p operator --bin mortise

# Debian 12: glibc 2.36. User 65532, CA certificates and libgcc are in it; nothing else is needed, which
# tests/it/empty_root.rs shows.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="mortise" \
      org.opencontainers.image.description="A node autoscaler for Kubernetes on EC2" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /src/target/dist/mortise /mortise
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/mortise"]
CMD ["controller"]
