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
	// lookInterval is how often the kubeconfig file is looked at, and while the
	// control plane refuses what it holds the Secret as well.
	lookInterval = 5 * time.Second
	// secretTimeout is how long the Secret may take.
	secretTimeout = 10 * time.Second
)

// credentials are who the agent is for the control plane, as its kubeconfig says
// now. They change while connections are open: a mounted Secret is renewed by
// whoever renews it, and by the agent itself.
type credentials struct {
	path, context string
	// secret reads the kubeconfig from where the file comes from. A mounted Secret
	// may take minutes to arrive.
	secret func(ctx context.Context) ([]byte, error)
	// renewed is called when others were taken.
	renewed func()
	// way is what the kubeconfig said at the start besides the credentials; moved is
	// closed when it says something else.
	way   way
	moved chan struct{}
	now   func() time.Time

	mu      sync.Mutex
	current *identity
	// file is what the file held last.
	file []byte
	// refused says that the control plane does not take the current ones.
	refused bool
	wake    chan struct{}
}

// identity is one state of the credentials.
type identity struct {
	certificate *tls.Certificate
	token       string
	// replaced is closed when there is another one.
	replaced chan struct{}
}

// newCredentials reads the kubeconfig for the first time.
func newCredentials(path, context string) (*credentials, *rest.Config, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig that --karmada-kubeconfig names: %w", err)
	}
	c := &credentials{path: path, context: context, file: file, now: time.Now, wake: make(chan struct{}, 1), renewed: func() {}, moved: make(chan struct{})}
	loaded, err := c.load(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s that --karmada-kubeconfig names: %w", path, err)
	}
	config, err := c.configOf(loaded)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s that --karmada-kubeconfig names: %w", path, err)
	}
	if c.current, err = identityOf(config); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s that --karmada-kubeconfig names: %w", path, err)
	}
	if c.way, err = wayOf(loaded, context); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s that --karmada-kubeconfig names: %w", path, err)
	}
	return c, config, nil
}

// load reads a kubeconfig. Files that it names are looked for beside it.
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

func (c *credentials) configOf(loaded *clientcmdapi.Config) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*loaded, c.context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}

func identityOf(config *rest.Config) (*identity, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("its files: %w", err)
	}
	found := &identity{token: config.BearerToken, replaced: make(chan struct{})}
	if config.BearerTokenFile != "" {
		token, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("its token: %w", err)
		}
		found.token = string(bytes.TrimSpace(token))
	}
	if len(config.CertData) == 0 {
		return found, nil
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, fmt.Errorf("its client certificate: %w", err)
	}
	found.certificate = &pair
	return found, nil
}

// same tells whether two identities are shown in the same way.
func (i *identity) same(other *identity) bool {
	if i.token != other.token || (i.certificate == nil) != (other.certificate == nil) {
		return false
	}
	return i.certificate == nil || bytes.Equal(i.certificate.Certificate[0], other.certificate.Certificate[0])
}

// leaf is the client certificate, nil if there is none.
func (i *identity) leaf() *x509.Certificate {
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

func (c *credentials) get() *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// take uses the credentials of another kubeconfig from now on, unless they are
// older than those that work.
func (c *credentials) take(ctx context.Context, kubeconfig []byte, from string) error {
	loaded, err := c.load(kubeconfig)
	if err != nil {
		return err
	}
	config, err := c.configOf(loaded)
	if err != nil {
		return err
	}
	next, err := identityOf(config)
	if err != nil {
		return err
	}
	c.mu.Lock()
	before := c.current
	if before.same(next) || !c.refused && older(next, before) {
		c.mu.Unlock()
		return nil
	}
	c.current, c.refused = next, false
	close(before.replaced)
	c.mu.Unlock()
	c.renewed()
	klog.FromContext(ctx).Info("Took new credentials for the control plane", "from", from, "until", expiry(next))
	return nil
}

func older(next, than *identity) bool {
	was, is := than.leaf(), next.leaf()
	return was != nil && is != nil && is.NotBefore.Before(was.NotBefore)
}

func expiry(of *identity) string {
	if leaf := of.leaf(); leaf != nil {
		return leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	return "unknown"
}

// refuse notes that the control plane does not take an identity.
func (c *credentials) refuse(ctx context.Context, of *identity) {
	c.mu.Lock()
	first := c.current == of && !c.refused
	if first {
		c.refused = true
	}
	c.mu.Unlock()
	if !first {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	klog.FromContext(ctx).Error(errRefused, "Waiting for new credentials", "cause", c.cause(of), "kubeconfig", c.path,
		"remedy", "put a kubeconfig with a valid certificate or token into the Secret or file that --karmada-kubeconfig comes from, or unregister the cluster and register it again; the agent goes on by itself, without a restart")
}

var errRefused = errors.New("the control plane refuses the credentials of the agent")

func (c *credentials) cause(of *identity) string {
	leaf := of.leaf()
	switch {
	case leaf == nil:
		return "the token is not valid, or not valid any more"
	case c.now().After(leaf.NotAfter):
		return fmt.Sprintf("the client certificate of %s expired at %s", leaf.Subject.CommonName, leaf.NotAfter.UTC().Format(time.RFC3339))
	case c.now().Before(leaf.NotBefore):
		return fmt.Sprintf("the client certificate of %s is valid from %s on; see whether the clocks are right", leaf.Subject.CommonName, leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the client certificate of %s was signed by %s, which the control plane does not trust", leaf.Subject.CommonName, leaf.Issuer.CommonName)
}

// accept notes that the control plane takes an identity.
func (c *credentials) accept(ctx context.Context, of *identity) {
	c.mu.Lock()
	again := c.current == of && c.refused
	if again {
		c.refused = false
	}
	c.mu.Unlock()
	if again {
		klog.FromContext(ctx).Info("The control plane takes the credentials again")
	}
}

// watch follows the kubeconfig until ctx ends, or until it leads elsewhere.
func (c *credentials) watch(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	told, wake := "", c.wake
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
			return
		case <-ticker.C:
			wake = c.wake
		case <-wake:
			// Once in a while: where the file and the Secret are both refused, each
			// would have the other one tried at once, all the time.
			wake = nil
		}
		text := ""
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != told {
				klog.FromContext(ctx).Error(err, "Keeping the credentials for the control plane")
			}
		}
		told = text
	}
}

// look takes what the file holds now, and what the Secret does if the control
// plane refuses what was taken before.
func (c *credentials) look(ctx context.Context) error {
	elsewhere, err := c.lookAtFile(ctx)
	if elsewhere || c.secret == nil || !c.isRefused() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	kubeconfig, unread := c.secret(ctx)
	if unread != nil || len(kubeconfig) == 0 {
		return err
	}
	if taken := c.take(ctx, kubeconfig, "its Secret in the cluster"); taken != nil {
		err = errors.Join(err, fmt.Errorf("reading the kubeconfig of the control plane in its Secret: %w", taken))
	}
	return err
}

// lookAtFile takes what the file holds, unless it is for elsewhere: then it is not to
// be shown here.
func (c *credentials) lookAtFile(ctx context.Context) (elsewhere bool, err error) {
	file, err := os.ReadFile(c.path)
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	elsewhere, err = c.leadsElsewhere(ctx, file)
	// A file that names others may say something new in the same words.
	if err == nil && !elsewhere && (!bytes.Equal(file, c.file) || c.isRefused()) {
		err = c.take(ctx, file, c.path)
	}
	c.file = file
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig %s of the control plane: %w", c.path, err)
	}
	return elsewhere, nil
}

func (c *credentials) isRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// roots are the certificate authorities that a configuration trusts; nil are those
// of the system.
func roots(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	return certutil.NewPoolFromBytes(ca)
}
