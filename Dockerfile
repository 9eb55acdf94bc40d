# The stock binary, for compose.yaml; a starting point for an image of your own, with the programs that your commands need.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    apt-get update && apt-get install -y --no-install-recommends libc6-dev gcc && \
    cargo build --release --locked -p runner --bin runner && cp target/release/runner /usr/local/bin/runner

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/runner /usr/local/bin/runner
USER nobody
# SIGTERM drains. As the first process of the container the runner also buries what its commands leave.
ENTRYPOINT ["runner"]
CMD ["--config", "/etc/runner/jobs.toml"]
