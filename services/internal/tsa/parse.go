package tsa

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Object identifiers of RFC 5652, 5035 and 3161.
var (
	oidSignedData    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidTSTInfo       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}
	oidContentType   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidMessageDigest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	oidSigningCert   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 12}
	oidSigningCertV2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 47}
)

// Stamp is a checked answer of an authority.
type Stamp struct {
	Time   time.Time
	Policy string // under which the authority works
	Serial string
	// TSA is the name in the certificate of the authority.
	TSA string

	digest  []byte // SHA-256 of what was stamped
	nonce   *big.Int
	signer  *x509.Certificate
	further []*x509.Certificate
}

// ErrMalformed reports an answer that is no stamp.
var ErrMalformed = errors.New("it is no time stamp in DER")

func malformed(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	return fmt.Errorf("%w: %s: %w", ErrMalformed, what, err)
}

// elements are the parts of a DER sequence or set, in order.
func elements(b []byte) (list []asn1.RawValue, err error) {
	for len(b) > 0 {
		var v asn1.RawValue
		if b, err = asn1.Unmarshal(b, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// sequence is elements of what has to be one whole SEQUENCE.
func sequence(b []byte) ([]asn1.RawValue, error) {
	var v asn1.RawValue
	rest, err := asn1.Unmarshal(b, &v)
	if err == nil && (len(rest) > 0 || v.Class != asn1.ClassUniversal || v.Tag != asn1.TagSequence) {
		err = errors.New("it is no sequence")
	}
	if err != nil {
		return nil, err
	}
	return elements(v.Bytes)
}

// isContext says whether a value has a context-specific tag.
func isContext(v asn1.RawValue, tag int) bool {
	return v.Class == asn1.ClassContextSpecific && v.Tag == tag
}

// is reads an object identifier and compares it.
func is(v asn1.RawValue, want asn1.ObjectIdentifier) bool {
	var got asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(v.FullBytes, &got)
	return err == nil && len(rest) == 0 && got.Equal(want)
}

// Parse reads the answer of an authority (TimeStampResp) and checks the token in it.
func Parse(answer []byte) (*Stamp, error) {
	parts, err := sequence(answer)
	if err != nil || len(parts) == 0 {
		return nil, malformed("the answer", err)
	}
	status, err := elements(parts[0].Bytes)
	var code int
	if err == nil && len(status) > 0 {
		_, err = asn1.Unmarshal(status[0].FullBytes, &code)
	}
	if err != nil || len(status) == 0 {
		return nil, malformed("the status", err)
	}
	if code > 1 || len(parts) != 2 { // 0 granted, 1 granted with changes
		return nil, fmt.Errorf("the authority refused to stamp, with status %d", code)
	}
	content, err := sequence(parts[1].FullBytes)
	if err != nil || len(content) != 2 || !is(content[0], oidSignedData) || !isContext(content[1], 0) {
		return nil, malformed("the token", err)
	}
	signed, err := parseSigned(content[1].Bytes)
	if err != nil {
		return nil, err
	}
	s, err := parseInfo(signed.content)
	if err != nil {
		return nil, err
	}
	return s, signed.verify(s)
}

// signedData is a CMS SignedData with one signer.
type signedData struct {
	content []byte // DER of TSTInfo
	certs   []*x509.Certificate
	signer  []asn1.RawValue // SignerInfo
}

func parseSigned(b []byte) (d signedData, err error) {
	parts, err := sequence(b)
	if err != nil || len(parts) < 4 {
		return d, malformed("the signed data", err)
	}
	inner, err := elements(parts[2].Bytes)
	if err != nil || len(inner) != 2 || !is(inner[0], oidTSTInfo) || !isContext(inner[1], 0) {
		return d, malformed("the signed content", err)
	}
	if _, err := asn1.Unmarshal(inner[1].Bytes, &d.content); err != nil {
		return d, malformed("the signed content", err)
	}
	for _, p := range parts[3 : len(parts)-1] {
		if !isContext(p, 0) {
			continue // revocation lists
		}
		if d.certs, err = x509.ParseCertificates(p.Bytes); err != nil {
			return d, malformed("the certificates", err)
		}
	}
	signers, err := elements(parts[len(parts)-1].Bytes)
	if err != nil || len(signers) != 1 {
		return d, malformed("the signer", err)
	}
	if d.signer, err = elements(signers[0].Bytes); err != nil || len(d.signer) < 6 {
		return d, malformed("the signer", err)
	}
	return d, nil
}

// parseInfo reads a TSTInfo.
func parseInfo(b []byte) (*Stamp, error) {
	parts, err := sequence(b)
	if err != nil || len(parts) < 5 {
		return nil, malformed("the stamp", err)
	}
	var policy asn1.ObjectIdentifier
	var what imprint
	var serial *big.Int
	for i, into := range []any{1: &policy, 2: &what, 3: &serial} {
		if into == nil {
			continue
		}
		if rest, err := asn1.Unmarshal(parts[i].FullBytes, into); err != nil || len(rest) > 0 {
			return nil, malformed("the stamp", err)
		}
	}
	if !what.Hash.Algorithm.Equal(oidSHA256) || len(what.Digest) != 32 {
		return nil, malformed("the stamped digest is no SHA-256", nil)
	}
	// With a fraction of a second, which encoding/asn1 refuses.
	at, err := time.Parse("20060102150405Z", string(parts[4].Bytes))
	if err != nil || parts[4].Tag != asn1.TagGeneralizedTime {
		return nil, malformed("the time", err)
	}
	s := &Stamp{Time: at.UTC(), Policy: policy.String(), Serial: serial.String(), digest: bytes.Clone(what.Digest)}
	for _, p := range parts[5:] {
		if p.Class == asn1.ClassUniversal && p.Tag == asn1.TagInteger {
			if _, err := asn1.Unmarshal(p.FullBytes, &s.nonce); err != nil {
				return nil, malformed("the nonce", err)
			}
		}
	}
	return s, nil
}
