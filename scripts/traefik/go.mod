module proofgate.invalid/traefik

go 1.26.0

require github.com/traefik/traefik/v3 v3.7.13

// A folder that Traefik's own go.mod replaces and its module lacks: empty.
replace github.com/traefik/traefik/dynamic/ext => ./ext

// Traefik's fork of it is not served by the Go module proxy ("403 This module version is not available"): ours denies everything.
replace github.com/abbot/go-http-auth => ./http-auth

// The copy that scripts/install-traefik.sh makes: lego without its 180 DNS providers, which are a third of the build.
replace github.com/go-acme/lego/v5 => ./lego

// As in Traefik's own go.mod.
replace github.com/gorilla/mux => github.com/containous/mux v0.0.0-20250523120546-41b6ec3aed59
