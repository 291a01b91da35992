package tsa

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
)

// hashes are the digests that a signature may be made over.
var hashes = []struct {
	oid  asn1.ObjectIdentifier
	hash crypto.Hash
}{
	{oidSHA256, crypto.SHA256},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}, crypto.SHA384},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}, crypto.SHA512},
}

func hashOf(v asn1.RawValue) (crypto.Hash, error) {
	var a algorithm
	if _, err := asn1.Unmarshal(v.FullBytes, &a); err != nil {
		return 0, malformed("a digest's algorithm", err)
	}
	for _, h := range hashes {
		if h.oid.Equal(a.Algorithm) {
			return h.hash, nil
		}
	}
	return 0, fmt.Errorf("the token is signed over a digest of an algorithm that is not believed, %s", a.Algorithm)
}

// verify checks the signature of a token, and notes who made it.
func (d *signedData) verify(s *Stamp) error {
	if d.signer[3].Class != asn1.ClassContextSpecific || d.signer[3].Tag != 0 {
		return malformed("the signer has no attributes", nil)
	}
	hash, err := hashOf(d.signer[2])
	if err != nil {
		return err
	}
	attributes, err := elements(d.signer[3].Bytes)
	if err != nil {
		return malformed("the attributes", err)
	}
	found := map[string]asn1.RawValue{}
	for _, a := range attributes {
		parts, err := elements(a.Bytes)
		var oid asn1.ObjectIdentifier
		if err == nil && len(parts) == 2 {
			_, err = asn1.Unmarshal(parts[0].FullBytes, &oid)
		}
		if err != nil || len(parts) != 2 {
			return malformed("an attribute", err)
		}
		found[oid.String()] = parts[1]
	}
	if err := d.checkAttributes(found, hash); err != nil {
		return err
	}
	if s.signer, err = d.certificate(found); err != nil {
		return err
	}
	for _, c := range d.certs {
		if !c.Equal(s.signer) {
			s.further = append(s.further, c)
		}
	}
	s.TSA = s.signer.Subject.String()
	if !slices.Equal(s.signer.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}) || len(s.signer.UnknownExtKeyUsage) > 0 {
		return fmt.Errorf("the certificate of %s is not for time stamps alone", s.TSA)
	}
	var signature []byte
	if _, err := asn1.Unmarshal(d.signer[5].FullBytes, &signature); err != nil {
		return malformed("the signature", err)
	}
	// What is signed is the set of attributes under its universal tag.
	text := bytes.Clone(d.signer[3].FullBytes)
	text[0] = 0x31
	how, err := signedHow(s.signer, hash, d.signer[4])
	if err == nil {
		err = s.signer.CheckSignature(how, text, signature)
	}
	if err != nil {
		return fmt.Errorf("the signature of %s does not verify: %w", s.TSA, err)
	}
	return nil
}

// checkAttributes compares the signed attributes with the content.
func (d *signedData) checkAttributes(found map[string]asn1.RawValue, hash crypto.Hash) error {
	if kind, err := elements(found[oidContentType.String()].Bytes); err != nil || len(kind) != 1 || !is(kind[0], oidTSTInfo) {
		return malformed("the content's type is not signed", err)
	}
	var digest []byte
	if _, err := asn1.Unmarshal(found[oidMessageDigest.String()].Bytes, &digest); err != nil {
		return malformed("the content's digest", err)
	}
	h := hash.New()
	h.Write(d.content)
	if !bytes.Equal(h.Sum(nil), digest) {
		return errors.New("the stamp's content is not what was signed")
	}
	return nil
}

// certificate finds the signer's: the one whose digest is among the signed attributes.
func (d *signedData) certificate(found map[string]asn1.RawValue) (*x509.Certificate, error) {
	for _, c := range d.certs {
		v1, v2 := sha1.Sum(c.Raw), sha256.Sum256(c.Raw)
		for oid, digest := range map[string][]byte{oidSigningCert.String(): v1[:], oidSigningCertV2.String(): v2[:]} {
			if first, err := firstCertID(found[oid].Bytes); err == nil && bytes.Equal(first, digest) {
				return c, nil
			}
		}
	}
	return nil, errors.New("the token does not carry the certificate that it is signed with")
}

// firstCertID is the digest of the signer's certificate in a SigningCertificate, of
// either version. Another digest than SHA-256 in the second version is not believed.
func firstCertID(b []byte) ([]byte, error) {
	for range 3 { // SigningCertificate, the list, the first of it
		parts, err := elements(b)
		if err != nil || len(parts) == 0 {
			return nil, malformed("the signer's certificate id", err)
		}
		b = parts[0].Bytes
	}
	parts, err := elements(b)
	if err == nil && len(parts) > 1 && parts[0].Tag == asn1.TagSequence { // the digest's algorithm, spelt out
		if h, err := hashOf(parts[0]); err != nil || h != crypto.SHA256 {
			return nil, malformed("the signer's certificate id", err)
		}
		parts = parts[1:]
	}
	if err != nil || len(parts) == 0 || parts[0].Tag != asn1.TagOctetString {
		return nil, malformed("the signer's certificate id", err)
	}
	return parts[0].Bytes, nil
}

var oidPSS = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 10}

// signedHow names the algorithm of a signature by the key's kind and the digest.
func signedHow(c *x509.Certificate, hash crypto.Hash, v asn1.RawValue) (x509.SignatureAlgorithm, error) {
	var a algorithm
	if _, err := asn1.Unmarshal(v.FullBytes, &a); err != nil {
		return 0, malformed("the signature's algorithm", err)
	}
	i := slices.Index([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}, hash)
	switch c.PublicKey.(type) {
	case *rsa.PublicKey:
		if a.Algorithm.Equal(oidPSS) {
			return []x509.SignatureAlgorithm{x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS}[i], nil
		}
		return []x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA}[i], nil
	case *ecdsa.PublicKey:
		return []x509.SignatureAlgorithm{x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512}[i], nil
	case ed25519.PublicKey:
		return x509.PureEd25519, nil
	}
	return 0, fmt.Errorf("a key of kind %T is not believed", c.PublicKey)
}

// Stamps says whether the stamp is about these bytes.
func (s *Stamp) Stamps(content []byte) error {
	if digest := sha256.Sum256(content); !bytes.Equal(digest[:], s.digest) {
		return errors.New("the stamp is about other bytes")
	}
	return nil
}

// Answers says whether the stamp answers a request.
func (s *Stamp) Answers(query []byte) error {
	q, err := parseRequest(query)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(q.Imprint.Digest, s.digest):
		return errors.New("the stamp is about other bytes than the request")
	case q.Nonce != nil && (s.nonce == nil || q.Nonce.Cmp(s.nonce) != 0):
		return errors.New("the stamp answers another request: its nonce is not the request's")
	}
	return nil
}

// Trusted says whether the authority's certificate leads to one of the roots, at the
// time of the stamp.
func (s *Stamp) Trusted(roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.further {
		between.AddCert(c)
	}
	_, err := s.signer.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: s.Time, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}})
	if err != nil {
		return fmt.Errorf("the time-stamping authority %s is not vouched for: %w", s.TSA, err)
	}
	return nil
}

// Digest is the SHA-256 of what was stamped.
func (s *Stamp) Digest() [32]byte { return [32]byte(s.digest) }
