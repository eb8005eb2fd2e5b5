# holdfast-operator and holdfast-agent, in an image without a shell, for a user without rights.
#   docker build -t holdfast:0.1.0 .
FROM debian:bookworm-slim AS build
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      g++ cmake ninja-build pkg-config ca-certificates \
      libcpprest-dev libboost-dev libboost-system-dev libboost-thread-dev libssl-dev \
      nlohmann-json3-dev libyaml-cpp-dev libsimdjson-dev libspdlog-dev libcli11-dev \
      prometheus-cpp-dev jq
WORKDIR /source
COPY CMakeLists.txt CMakePresets.json ./
COPY core core
COPY api api
COPY client client
COPY reconciler reconciler
COPY lane lane
COPY operator operator
COPY agent agent
COPY plugin plugin
RUN cmake --preset release && cmake --build --preset release --target holdfast-operator holdfast-agent
# The programs, what they are linked with, and whose these are.
COPY hack/image-root hack/image-root
RUN hack/image-root /image build/release operator/runtime/holdfast-operator agent/holdfast-agent

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Holdfast" \
      org.opencontainers.image.description="Kubernetes jobs that do not get stuck" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
USER 65532:65532
ENTRYPOINT ["/holdfast-operator"]
