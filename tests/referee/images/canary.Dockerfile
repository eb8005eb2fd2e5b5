# The operator and an agent that believes its Lease for ever: two lines of agent/base/lease_times.h are broken.
#   docker build -t holdfast-canary:local -f canary.Dockerfile .
FROM holdfast-build:local AS build
RUN sed -i -E 's/^(constexpr Duration (terminate|kill)_after\(Duration duration\) \{ return )duration/\11000 * duration/' \
      agent/base/lease_times.h && \
    test "$(grep -c 'return 1000 \* duration' agent/base/lease_times.h)" = 2 && \
    cmake --build --preset release --target holdfast-agent && \
    hack/image-root /canary build/release operator/runtime/holdfast-operator agent/holdfast-agent

FROM scratch
COPY --from=build /canary /
USER 65532:65532
ENTRYPOINT ["/holdfast-operator"]
