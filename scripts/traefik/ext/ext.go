// Package ext takes the place of a folder that Traefik's module lacks. It embeds both types in its routing configuration.
package ext

// HTTP adds nothing to the configuration of HTTP routing.
type HTTP struct{}

// Router adds nothing to the configuration of a router.
type Router struct{}
