package pki

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// checkInterval is the minimum time between two checks of a certificate's files.
const checkInterval = time.Second

// ServingCertificate is a server's certificate that is read again when its files change. The files are
// checked when a client connects, because this requires neither a goroutine nor a file watch. The
// number of file watches is limited.
type ServingCertificate struct {
	certFile, keyFile string
	now               func() time.Time

	mu          sync.Mutex
	certificate *tls.Certificate
	modTimes    [2]time.Time
	checkedAt   time.Time
}

// LoadServingCertificate reads a certificate and its key from files.
func LoadServingCertificate(certFile, keyFile string) (*ServingCertificate, error) {
	s := &ServingCertificate{certFile: certFile, keyFile: keyFile, now: time.Now}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

// GetCertificate has the signature of tls.Config.GetCertificate. As long as the new files cannot be
// read or do not match each other, it returns the previous certificate.
func (s *ServingCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.checkedAt) >= checkInterval {
		s.checkedAt = now
		if modTimes, err := s.readModTimes(); err == nil && modTimes != s.modTimes {
			_ = s.read()
		}
	}
	return s.certificate, nil
}

func (s *ServingCertificate) read() error {
	// Read the modification times before the content, so that a file that changes while it is read is
	// read again.
	modTimes, err := s.readModTimes()
	if err != nil {
		return fmt.Errorf("checking the files of a certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	if err != nil {
		return fmt.Errorf("loading certificate %s and key %s: %w", s.certFile, s.keyFile, err)
	}
	s.certificate, s.modTimes = &pair, modTimes
	return nil
}

func (s *ServingCertificate) readModTimes() (modTimes [2]time.Time, err error) {
	for i, path := range []string{s.certFile, s.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return modTimes, err
		}
		modTimes[i] = info.ModTime()
	}
	return modTimes, nil
}
