package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

const (
	// reloadInterval is the interval at which the agent reads the kubeconfig file. While the
	// control plane rejects the credentials, the agent also reads the Secret that is mounted as
	// this file.
	reloadInterval = 5 * time.Second
	// secretTimeout limits the time for reading the Secret that is mounted as the kubeconfig file.
	secretTimeout = 10 * time.Second
)

// credentials are the current credentials of the agent for the control plane, read from the agent's
// kubeconfig. The credentials change while connections are open, because the kubelet updates a mounted
// Secret, and because the agent renews its certificate.
type credentials struct {
	path, context string
	// readSecret reads the kubeconfig from the Secret that is mounted as the file, because the
	// update of a mounted Secret may take minutes. nil means that only the file is read.
	readSecret func(ctx context.Context) ([]byte, error)
	// onChange is called after the credentials changed.
	onChange func()
	// target is the kubeconfig's content, without the credentials, when the agent started. targetChanged is
	// closed when the file has another target.
	target        target
	targetChanged chan struct{}
	now           func() time.Time

	mu      sync.Mutex
	current *identity
	// fileContent is the content of the kubeconfig file when it was last read.
	fileContent []byte
	// rejected means that the control plane rejects the current credentials.
	rejected       bool
	reloadRequests chan struct{}
}

// identity is one version of the credentials.
type identity struct {
	certificate *tls.Certificate
	token       string
	// replaced is closed when another version replaces this version.
	replaced chan struct{}
}

// newCredentials reads the kubeconfig for the first time.
func newCredentials(path, context string) (*credentials, *rest.Config, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig given by --karmada-kubeconfig: %w", err)
	}
	c := &credentials{path: path, context: context, fileContent: file, now: time.Now, reloadRequests: make(chan struct{}, 1),
		onChange: func() {}, targetChanged: make(chan struct{})}
	loaded, err := c.load(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s given by --karmada-kubeconfig: %w", path, err)
	}
	config, err := c.clientConfig(loaded)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s given by --karmada-kubeconfig: %w", path, err)
	}
	if c.current, err = newIdentity(config); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s given by --karmada-kubeconfig: %w", path, err)
	}
	if c.target, err = newTarget(loaded, context); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s given by --karmada-kubeconfig: %w", path, err)
	}
	return c, config, nil
}

// load parses a kubeconfig. It resolves relative paths in the kubeconfig against the directory of
// the file.
func (c *credentials) load(kubeconfig []byte) (*clientcmdapi.Config, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, user := range loaded.AuthInfos {
		user.LocationOfOrigin = c.path
	}
	for _, cluster := range loaded.Clusters {
		cluster.LocationOfOrigin = c.path
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return nil, err
	}
	return loaded, nil
}

func (c *credentials) clientConfig(loaded *clientcmdapi.Config) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*loaded, c.context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}

func newIdentity(config *rest.Config) (*identity, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the certificate files: %w", err)
	}
	found := &identity{token: config.BearerToken, replaced: make(chan struct{})}
	if config.BearerTokenFile != "" {
		token, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading the token file: %w", err)
		}
		found.token = string(bytes.TrimSpace(token))
	}
	if len(config.CertData) == 0 {
		return found, nil
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, fmt.Errorf("parsing the client certificate: %w", err)
	}
	found.certificate = &pair
	return found, nil
}

// equal reports whether two identities have the same token and client certificate.
func (i *identity) equal(other *identity) bool {
	if i.token != other.token || (i.certificate == nil) != (other.certificate == nil) {
		return false
	}
	return i.certificate == nil || bytes.Equal(i.certificate.Certificate[0], other.certificate.Certificate[0])
}

// clientCertificate returns the client certificate, or nil if there is none.
func (i *identity) clientCertificate() *x509.Certificate {
	if i.certificate == nil {
		return nil
	}
	if i.certificate.Leaf != nil {
		return i.certificate.Leaf
	}
	parsed, err := x509.ParseCertificate(i.certificate.Certificate[0])
	if err != nil {
		return nil
	}
	return parsed
}

func (c *credentials) currentIdentity() *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// update replaces the current credentials with the credentials in a new version of the kubeconfig.
// Unless the control plane rejects the current credentials, update ignores a client certificate
// that is older than the current one.
func (c *credentials) update(ctx context.Context, kubeconfig []byte, from string) error {
	loaded, err := c.load(kubeconfig)
	if err != nil {
		return err
	}
	config, err := c.clientConfig(loaded)
	if err != nil {
		return err
	}
	next, err := newIdentity(config)
	if err != nil {
		return err
	}
	c.mu.Lock()
	before := c.current
	if before.equal(next) || !c.rejected && isOlder(next, before) {
		c.mu.Unlock()
		return nil
	}
	c.current, c.rejected = next, false
	close(before.replaced)
	c.mu.Unlock()
	c.onChange()
	klog.FromContext(ctx).Info("Using new credentials for the control plane", "from", from, "expires", formatExpiry(next))
	return nil
}

func isOlder(next, current *identity) bool {
	nextLeaf, currentLeaf := next.clientCertificate(), current.clientCertificate()
	return nextLeaf != nil && currentLeaf != nil && nextLeaf.NotBefore.Before(currentLeaf.NotBefore)
}

func formatExpiry(i *identity) string {
	if leaf := i.clientCertificate(); leaf != nil {
		return leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	return "unknown"
}

// markRejected records that the control plane rejected an identity.
func (c *credentials) markRejected(ctx context.Context, used *identity) {
	c.mu.Lock()
	first := c.current == used && !c.rejected
	if first {
		c.rejected = true
	}
	c.mu.Unlock()
	if !first {
		return
	}
	select {
	case c.reloadRequests <- struct{}{}:
	default:
	}
	klog.FromContext(ctx).Error(errRejected, "Waiting for new credentials", "cause", c.rejectionCause(used), "kubeconfig", c.path,
		"remedy", "put a kubeconfig with a valid certificate or token into the Secret or file given by --karmada-kubeconfig, or unregister the cluster and register it again; the agent continues without a restart")
}

var errRejected = errors.New("the control plane rejects the credentials of the agent")

func (c *credentials) rejectionCause(rejected *identity) string {
	leaf := rejected.clientCertificate()
	switch {
	case leaf == nil:
		return "the token is invalid or expired"
	case c.now().After(leaf.NotAfter):
		return fmt.Sprintf("the client certificate of %s expired at %s", leaf.Subject.CommonName, leaf.NotAfter.UTC().Format(time.RFC3339))
	case c.now().Before(leaf.NotBefore):
		return fmt.Sprintf("the client certificate of %s is not valid before %s; check the clocks of both clusters", leaf.Subject.CommonName,
			leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the client certificate of %s was signed by %s, which the control plane does not trust", leaf.Subject.CommonName,
		leaf.Issuer.CommonName)
}

// markAccepted records that the control plane accepted an identity.
func (c *credentials) markAccepted(ctx context.Context, used *identity) {
	c.mu.Lock()
	recovered := c.current == used && c.rejected
	if recovered {
		c.rejected = false
	}
	c.mu.Unlock()
	if recovered {
		klog.FromContext(ctx).Info("The control plane accepts the credentials again")
	}
}

// watchKubeconfig reloads the kubeconfig until ctx ends or the target of the kubeconfig changes.
func (c *credentials) watchKubeconfig(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	loggedError, wake := "", c.reloadRequests
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.targetChanged:
			return
		case <-ticker.C:
			wake = c.reloadRequests
		case <-wake:
			// A rejection triggers at most one reload per interval. If the control plane
			// rejects both the file and the Secret, each reload would otherwise trigger the
			// next one immediately.
			wake = nil
		}
		text := ""
		if err := c.reload(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != loggedError {
				klog.FromContext(ctx).Error(err, "Keeping the credentials for the control plane")
			}
		}
		loggedError = text
	}
}

// reload reads the file. If the control plane rejects the current credentials, reload also reads
// the Secret.
func (c *credentials) reload(ctx context.Context) error {
	targetChanged, err := c.reloadFile(ctx)
	if targetChanged || c.readSecret == nil || !c.isRejected() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	kubeconfig, readErr := c.readSecret(ctx)
	if readErr != nil || len(kubeconfig) == 0 {
		return err
	}
	if updateErr := c.update(ctx, kubeconfig, "Secret in the cluster"); updateErr != nil {
		err = errors.Join(err, fmt.Errorf("reading the kubeconfig of the control plane from the Secret: %w", updateErr))
	}
	return err
}

// reloadFile reads the credentials from the file. If the file has another target, reloadFile does
// not use the new credentials, because they must not be sent to the old target.
func (c *credentials) reloadFile(ctx context.Context) (targetChanged bool, err error) {
	file, err := os.ReadFile(c.path)
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	targetChanged, err = c.verifyTarget(ctx, file)
	// A kubeconfig may refer to other files, whose content can change although the kubeconfig does
	// not change. So read the kubeconfig again after a rejection.
	if err == nil && !targetChanged && (!bytes.Equal(file, c.fileContent) || c.isRejected()) {
		err = c.update(ctx, file, c.path)
	}
	c.fileContent = file
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig %s of the control plane: %w", c.path, err)
	}
	return targetChanged, nil
}

func (c *credentials) isRejected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rejected
}

// caPool returns the pool of trusted certificate authorities. nil means the certificate
// authorities of the system.
func caPool(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	return certutil.NewPoolFromBytes(ca)
}
