package pki

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// lookPause is how long a certificate is shown without a look at its files.
const lookPause = time.Second

// Serving is a certificate that a server shows, read again when its files change.
// It looks when somebody connects: it needs no watch, of which a system has few,
// and nothing runs that would have to end.
type Serving struct {
	certFile, keyFile string
	now               func() time.Time

	mu      sync.Mutex
	shown   *tls.Certificate
	changed [2]time.Time
	looked  time.Time
}

// LoadServing reads a certificate and its key.
func LoadServing(certFile, keyFile string) (*Serving, error) {
	s := &Serving{certFile: certFile, keyFile: keyFile, now: time.Now}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

// GetCertificate is for a tls.Config. As long as new files cannot be read, or do
// not fit each other, the certificate before them is shown.
func (s *Serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.looked) >= lookPause {
		s.looked = now
		if changed, err := s.times(); err == nil && changed != s.changed {
			_ = s.read()
		}
	}
	return s.shown, nil
}

func (s *Serving) read() error {
	// What changes while it is read is read again.
	changed, err := s.times()
	if err != nil {
		return fmt.Errorf("looking for a certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	if err != nil {
		return fmt.Errorf("loading certificate %s and key %s: %w", s.certFile, s.keyFile, err)
	}
	s.shown, s.changed = &pair, changed
	return nil
}

func (s *Serving) times() (changed [2]time.Time, err error) {
	for i, path := range []string{s.certFile, s.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return changed, err
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}
