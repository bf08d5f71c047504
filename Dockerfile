# The image of Proofgate: docs/operate/image.md. What is done here is done by scripts, and tests run the same ones without a container engine.

# The base, with its digest: NODE_IMAGE=node:22-bookworm-slim@sha256:…. What is built twice from one digest is the same.
ARG NODE_IMAGE=node:22-bookworm-slim

# Of the processor that the image is for: nothing of it is run, the image takes Node.js and the libraries from it.
FROM $NODE_IMAGE AS runtime

# Of the processor that builds.
FROM --platform=$BUILDPLATFORM $NODE_IMAGE AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc LICENSE tsconfig.json tsconfig.build.json ./
COPY scripts/build-console.mjs scripts/build-console.mjs
COPY scripts/failure.mjs scripts/failure.mjs
COPY scripts/image scripts/image
COPY scripts/openapi-types.mjs scripts/openapi-types.mjs
COPY scripts/sbom scripts/sbom
COPY bin bin
COPY docs/operate/run-book.md docs/operate/run-book.md
COPY docs/reference/openapi.json docs/reference/openapi.json
COPY proto proto
COPY src src
RUN scripts/image/compile.sh
ARG TARGETARCH
RUN scripts/image/install-production.sh "$TARGETARCH"
ARG SOURCE_DATE_EPOCH=0
RUN --mount=type=bind,from=runtime,target=/runtime scripts/image/lay-out.mjs "$TARGETARCH" --runtime=/runtime --out=/image

# The program, Node.js, the libraries that they load, and nothing else: no shell, no package manager.
FROM scratch
LABEL org.opencontainers.image.title="Proofgate" \
      org.opencontainers.image.description="Proof-bound request verification at gateways, proxies and APIs" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
# One arena of memory: threads allocate little, and each of the others keeps what it once took. What is large goes back to the system when it
# is freed: left to itself, the allocator keeps ever larger pieces.
ENV PATH=/usr/local/bin MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/proofgate"]
CMD ["--help"]
