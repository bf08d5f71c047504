// Package istio lets Istio's own pilot translate the manifests below envoy/istio into the configuration that it hands to Envoys, and writes
// it in the form of Envoy's config_dump. Run by scripts/make-gateway-dumps.sh, in a module of its own: it is a test because pilot's
// generator for single proxies wants one.
package istio

import (
	"os"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/core"
	"istio.io/istio/pilot/pkg/xds/endpoints"
	"istio.io/istio/pkg/config/mesh"
)

// The proxy that the configuration is for: PROXY is `gateway`, or `sidecar` of the API, or `egress` of a workload that calls it.
func proxyOf(kind string) *model.Proxy {
	labels := map[string]string{"istio": "ingress"}
	proxy := &model.Proxy{Type: model.Router, ConfigNamespace: "istio-ingress", IPAddresses: []string{"10.0.0.1"}}
	switch kind {
	case "sidecar":
		labels = map[string]string{"app": "orders"}
		proxy = &model.Proxy{Type: model.SidecarProxy, ConfigNamespace: "shop", IPAddresses: []string{"10.0.0.7"}}
	case "egress":
		labels = map[string]string{"app": "billing"}
		proxy = &model.Proxy{Type: model.SidecarProxy, ConfigNamespace: "billing", IPAddresses: []string{"10.0.0.8"}}
	}
	proxy.Labels = labels
	proxy.Metadata = &model.NodeMetadata{Namespace: proxy.ConfigNamespace, Labels: labels, IstioVersion: "1.31.0"}
	return proxy
}

func TestTranslate(t *testing.T) {
	generator := core.NewConfigGenTest(t, core.TestOptions{
		ConfigString: read(t, os.Getenv("MANIFESTS")),
		MeshConfig:   meshOf(t, read(t, os.Getenv("VALUES"))),
	})
	proxy := generator.SetupProxy(proxyOf(os.Getenv("PROXY")))
	clusters := generator.Clusters(proxy)
	assignments := endpointsOf(generator, proxy, clusters)
	dump := dumpOf(t, generator.Listeners(proxy), generator.Routes(proxy), clusters, assignments)
	text, err := protojson.MarshalOptions{Multiline: true, UseProtoNames: true}.Marshal(dump)
	check(t, err)
	check(t, os.WriteFile(os.Getenv("OUT"), text, 0o644))
}

// Values of istiod's chart: their meshConfig is what istiod reads, strictly.
func meshOf(t *testing.T, values string) *meshconfig.MeshConfig {
	var parsed struct {
		MeshConfig map[string]any `json:"meshConfig"`
	}
	check(t, yaml.UnmarshalStrict([]byte(values), &parsed))
	text, err := yaml.Marshal(parsed.MeshConfig)
	check(t, err)
	config, err := mesh.ApplyMeshConfigDefaults(string(text))
	check(t, err)
	return config
}

// Of those clusters whose endpoints an Envoy is configured separately from them.
func endpointsOf(generator *core.ConfigGenTest, proxy *model.Proxy, clusters []*clusterv3.Cluster) []*endpointv3.ClusterLoadAssignment {
	var assignments []*endpointv3.ClusterLoadAssignment
	for _, one := range clusters {
		if one.GetType() == clusterv3.Cluster_EDS {
			builder := endpoints.NewEndpointBuilder(one.Name, proxy, generator.PushContext())
			assignments = append(assignments, builder.BuildClusterLoadAssignment(generator.Env().EndpointIndex))
		}
	}
	return assignments
}

func dumpOf(
	t *testing.T,
	listeners []*listenerv3.Listener,
	routes []*routev3.RouteConfiguration,
	clusters []*clusterv3.Cluster,
	assignments []*endpointv3.ClusterLoadAssignment,
) *adminv3.ConfigDump {
	ofListeners := &adminv3.ListenersConfigDump{}
	for _, one := range listeners {
		state := &adminv3.ListenersConfigDump_DynamicListenerState{Listener: anyOf(t, one)}
		ofListeners.DynamicListeners = append(ofListeners.DynamicListeners, &adminv3.ListenersConfigDump_DynamicListener{Name: one.Name, ActiveState: state})
	}
	ofRoutes := &adminv3.RoutesConfigDump{}
	for _, one := range routes {
		ofRoutes.DynamicRouteConfigs = append(ofRoutes.DynamicRouteConfigs, &adminv3.RoutesConfigDump_DynamicRouteConfig{RouteConfig: anyOf(t, one)})
	}
	ofClusters := &adminv3.ClustersConfigDump{}
	for _, one := range clusters {
		ofClusters.DynamicActiveClusters = append(ofClusters.DynamicActiveClusters, &adminv3.ClustersConfigDump_DynamicCluster{Cluster: anyOf(t, one)})
	}
	ofEndpoints := &adminv3.EndpointsConfigDump{}
	for _, one := range assignments {
		ofEndpoints.DynamicEndpointConfigs = append(ofEndpoints.DynamicEndpointConfigs, &adminv3.EndpointsConfigDump_DynamicEndpointConfig{EndpointConfig: anyOf(t, one)})
	}
	return &adminv3.ConfigDump{Configs: []*anypb.Any{anyOf(t, ofListeners), anyOf(t, ofRoutes), anyOf(t, ofClusters), anyOf(t, ofEndpoints)}}
}

func anyOf(t *testing.T, message proto.Message) *anypb.Any {
	wrapped, err := anypb.New(message)
	check(t, err)
	return wrapped
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
