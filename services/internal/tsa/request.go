package tsa

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
)

var oidSHA256 = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}

// algorithm is an AlgorithmIdentifier.
type algorithm struct {
	Algorithm  asn1.ObjectIdentifier
	Parameters asn1.RawValue `asn1:"optional"`
}

// imprint is what is stamped.
type imprint struct {
	Hash   algorithm
	Digest []byte
}

// request is a TimeStampReq without policy and extensions.
type request struct {
	Version int
	Imprint imprint
	Nonce   *big.Int `asn1:"optional"`
	CertReq bool     `asn1:"optional"`
}

// nonceBits is the length of a nonce; longer ones are refused by some authorities.
const nonceBits = 63

// Request makes the request to stamp some bytes, with a random nonce. The authority learns
// their SHA-256 and nothing else.
func Request(content []byte) ([]byte, error) {
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), nonceBits))
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(content)
	b, err := asn1.Marshal(request{Version: 1, Imprint: imprint{Hash: algorithm{Algorithm: oidSHA256, Parameters: asn1.NullRawValue}, Digest: digest[:]}, Nonce: nonce, CertReq: true})
	if err != nil {
		return nil, fmt.Errorf("make a stamp request: %w", err)
	}
	return b, nil
}

// parseRequest reads what [Request] made.
func parseRequest(b []byte) (q request, err error) {
	rest, err := asn1.Unmarshal(b, &q)
	if err == nil && len(rest) > 0 {
		err = errors.New("something follows it")
	}
	if err != nil {
		return q, fmt.Errorf("read the stamp request: %w", err)
	}
	return q, nil
}

// maxAnswer_bytes bounds an authority's answer.
const maxAnswer_bytes = 256 << 10

// Ask sends a request to an authority and returns its answer, unchecked.
func Ask(ctx context.Context, url string, query []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(query))
	if err != nil {
		return nil, fmt.Errorf("ask %s for a stamp: %w", url, err)
	}
	r.Header.Set("Content-Type", "application/timestamp-query")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for a stamp: %w", err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer_bytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s for a stamp: %w", url, err)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask %s for a stamp: it answered %s", url, answer.Status)
	case len(b) > maxAnswer_bytes:
		return nil, fmt.Errorf("ask %s for a stamp: more than %d bytes came", url, maxAnswer_bytes)
	}
	return b, nil
}
