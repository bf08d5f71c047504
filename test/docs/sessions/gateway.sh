# An Envoy that runs with the shipped configuration, the same opened, and manifests of a mesh.
own_machine
cp "$CHECKOUT/envoy/envoy.yaml" .
"$CHECKOUT"/.venv/envoy-1.40.0/lib/python3*/site-packages/envoy/_bin/envoy -c envoy.yaml --log-level error --concurrency 1 >>"$SESSION/envoy" 2>&1 &
until_ok curl --silent --fail http://127.0.0.1:9901/ready
mkdir policies
cp "$CHECKOUT/envoy/istio/mesh-config.yaml" .
cp "$CHECKOUT"/envoy/istio/{gateway,route,verifier-socket}.yaml policies/

# What the document shows: what the shipped file says when one setting of it is another.
opened() {
  mkdir opened && sed 's/failure_mode_allow: false/failure_mode_allow: true/' envoy.yaml >opened/envoy.yaml
  (cd opened && proofgate envoy lint envoy.yaml)
}
# A route that needs no proof, allowed where it stands.
excepted() {
  node -e '
    const [route] = [fs.readFileSync("excepted.yaml", "utf8")];
    const at = /^( *)- match: \{ prefix: \/ \}\n/m;
    const shipped = fs.readFileSync("envoy.yaml", "utf8");
    const indent = at.exec(shipped)[1];
    const filter = route.trimEnd().split("\n").map((line) => `${indent}    ${line}`).join("\n");
    process.stdout.write(shipped.replace(at, `${indent}- match: { path: /healthz }\n${indent}  route: { cluster: upstream }\n${indent}  typed_per_filter_config:\n${filter}\n$&`));' >excepted-envoy.yaml
  proofgate envoy lint excepted-envoy.yaml
}
