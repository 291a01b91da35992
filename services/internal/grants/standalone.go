package grants

import "strings"

// StandAlone renders the configuration of a nats-server that runs by itself:
// the same accounts as the embedded one. Paths and addresses come from the
// server's environment, the users of each account from actors/ beside the file
// (see [UsersFile]); after a change there, tell the server to reload. A process
// in the role "bus" connects to it, makes the streams and serves the desk.
func StandAlone(pools []string) (string, error) {
	accounts, err := Static(pools)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(standAloneHead)
	b.WriteString(accounts)
	return b.String(), nil
}

const standAloneHead = `# Permissions of banksman for a stand-alone nats-server, ` + MinServer + ` or newer.
# Generated; the users are in actors/.
#
# BANKSMAN_STORE      directory of the store, on a file system of its own
# BANKSMAN_LISTEN     address to listen on, such as 127.0.0.1:4222
# BANKSMAN_TLS_CERT   certificate and key of the server in PEM
# BANKSMAN_TLS_KEY
listen: $BANKSMAN_LISTEN
tls {
  cert_file: $BANKSMAN_TLS_CERT
  key_file: $BANKSMAN_TLS_KEY
  handshake_first: true
  min_version: "1.3"
  timeout: 5
}
max_payload: 1MB
# An acknowledged event is on the disk. Do not weaken this.
jetstream { store_dir: $BANKSMAN_STORE, sync_interval: always }
`

// MinServer is the oldest nats-server on which the permissions hold: older
// ones let the reply subject of a request reach the JetStream API.
const MinServer = "2.15.3"
