# The site of site.sh, and a machine with a real SPIRE server and agent; their entries are for the user of this shell.
. "$CHECKOUT/test/docs/sessions/site.sh"
echo '127.0.0.3 broker.shop.example' >>/etc/hosts
export PROOFGATE_TOKEN_FILE=$PWD/control/bootstrap-token
export PATH=$CHECKOUT/.cache/spire/bin:$PATH
spire=/run/spire
mkdir -p $spire/server $spire/agent/public
cat >server.json <<END
{"server":{"bind_address":"127.0.0.1","bind_port":"8071","socket_path":"$spire/server/api.sock","trust_domain":"shop.example",
  "data_dir":"$spire/server","log_level":"WARN","ca_key_type":"ec-p256","default_x509_svid_ttl":"5m"},
 "plugins":{"DataStore":[{"sql":{"plugin_data":{"database_type":"sqlite3","connection_string":"$spire/server/datastore.sqlite3"}}}],
  "NodeAttestor":[{"join_token":{"plugin_data":{}}}],"KeyManager":[{"memory":{"plugin_data":{}}}]}}
END
cat >agent.json <<END
{"agent":{"data_dir":"$spire/agent","log_level":"WARN","server_address":"127.0.0.1","server_port":"8071","socket_path":"$spire/agent/public/api.sock",
  "trust_bundle_path":"$spire/agent/bootstrap.pem","trust_domain":"shop.example","experimental":{"sync_interval":"1s"}},
 "plugins":{"NodeAttestor":[{"join_token":{"plugin_data":{}}}],"KeyManager":[{"memory":{"plugin_data":{}}}],
  "WorkloadAttestor":[{"unix":{"plugin_data":{}}}]}}
END
spire-server() { command spire-server "$@" -socketPath $spire/server/api.sock; }
command spire-server run -config server.json >>"$SESSION/spire-server" 2>&1 &
until_ok spire-server healthcheck
spire-server bundle show -format pem >$spire/agent/bootstrap.pem
command spire-agent run -config agent.json -joinToken "$(spire-server token generate -spiffeID spiffe://shop.example/agent/1 | sed 's/^Token: //')" \
  >>"$SESSION/spire-agent" 2>&1 &
until_ok command spire-agent healthcheck -socketPath $spire/agent/public/api.sock
