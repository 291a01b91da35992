package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/banksman/banksman/services/internal/agentapi"
)

// sessionIdle is how long a session without requests is kept.
const sessionIdle = 30 * time.Minute

// Handler answers clients over streamable HTTP. Every request has to carry
// "Authorization: Bearer TOKEN" with the token that the server proposes with:
// anybody on the machine reaches a loopback port, and a page in a browser can
// too.
func (s *Server) Handler(token string) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{SessionTimeout: sessionIdle})
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			json.MarshalWrite(w, agentapi.Envelope{Error: &agentapi.Error{Code: "bad_token", Message: "the request carries another token than this server's", Next: "send Authorization: Bearer TOKEN"}})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxLine)
		inner.ServeHTTP(w, r)
	})
}

// CheckAddress refuses an address that others than this machine reach.
func CheckAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if ip, err := netip.ParseAddr(strings.ToLower(host)); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("address %q: want a loopback address such as 127.0.0.1:7410", address)
	}
	return nil
}
