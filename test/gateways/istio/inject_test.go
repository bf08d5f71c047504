package istio

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/kube/inject"
)

// INJECTOR is the ConfigMap `istio-sidecar-injector` of istiod's chart, MANIFESTS are pods; OUT becomes what Istio's injection makes of them.
func TestInject(t *testing.T) {
	var injector struct {
		Data struct{ Config, Values string }
	}
	check(t, yaml.Unmarshal([]byte(read(t, os.Getenv("INJECTOR"))), &injector))
	config, err := inject.UnmarshalConfig([]byte(injector.Data.Config))
	check(t, err)
	values, err := inject.NewValuesConfig(injector.Data.Values)
	check(t, err)
	pods := bytes.NewBufferString(read(t, os.Getenv("MANIFESTS")))
	var injected bytes.Buffer
	warn := func(warning string) { t.Error(warning) }
	check(t, inject.IntoResourceFile(nil, config.Templates, values, "", mesh.DefaultMeshConfig(), pods, &injected, warn))
	check(t, os.WriteFile(os.Getenv("OUT"), injected.Bytes(), 0o644))
}
