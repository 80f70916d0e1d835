package registration

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

const pinPrefix = "sha256:"

// Pin is the SHA-256 hash of a certificate authority's public key.
type Pin [sha256.Size]byte

// NewPin returns the certificate's pin.
func NewPin(certificate *x509.Certificate) Pin {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}

// ParsePin parses a pin: sha256: and 64 hexadecimal digits.
func ParsePin(text string) (Pin, error) {
	digits, ok := strings.CutPrefix(strings.ToLower(text), pinPrefix)
	decoded, err := hex.DecodeString(digits)
	if !ok || err != nil || len(decoded) != sha256.Size {
		return Pin{}, fmt.Errorf("%q is not a hash: write %s and %d hexadecimal digits", text, pinPrefix, 2*sha256.Size)
	}
	return Pin(decoded), nil
}

// String returns the pin in the form that ParsePin accepts.
func (p Pin) String() string { return pinPrefix + hex.EncodeToString(p[:]) }

// CAPins returns the pins of the CA certificates in the control plane's client configuration. It returns an
// error if the configuration contains none.
func CAPins(karmada *rest.Config) ([]Pin, error) {
	config := rest.CopyConfig(karmada)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the CA certificates of the kubeconfig: %w", err)
	}
	if len(config.CAData) == 0 {
		return nil, errors.New("the kubeconfig of the control plane has no CA certificates, and the register command needs their hash: add certificate-authority or certificate-authority-data to its cluster")
	}
	certificates, err := cert.ParseCertsPEM(config.CAData)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificates of the kubeconfig: %w", err)
	}
	pins := make([]Pin, 0, len(certificates))
	for _, certificate := range certificates {
		pins = append(pins, NewPin(certificate))
	}
	return pins, nil
}
