package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

const (
	// maxIdentityAttempts is the maximum number of identity checks for one request. More than one
	// check may be needed, because another request may use the new connection first.
	maxIdentityAttempts = 3
	// maxIdentityBytes is the maximum size of the response that identifies the cluster, in bytes.
	maxIdentityBytes = 1 << 20
)

// IdentityError reports that a member is another cluster than the one that its Cluster describes,
// or that the identity of the member is unknown. No request is sent to such a member.
type IdentityError struct {
	Identity domain.IdentityCheck
	message  string
}

// Error implements error.
func (i *IdentityError) Error() string { return i.message }

// identityVerifier verifies that the connections to a member lead to the registered cluster, because an
// address may lead to another cluster with each new connection. Only an identity check or a health probe,
// which includes such a check, opens a connection. Any other request uses a connection that is open, and if
// none is free, an identity check comes first. The check at each probe detects a proxy that keeps its
// connections but changes the cluster behind them.
type identityVerifier struct {
	cluster, endpoint, expectedID string
	// namespaceURL is the URL of the namespace kube-system.
	namespaceURL *url.URL
	metrics      *Metrics
	// generation increases whenever all earlier checks become invalid. proven is the generation of the last
	// successful check, plus one.
	generation, proven atomic.Int64
	// successes is the number of successful checks.
	successes atomic.Int64
	// checkSlot allows only one request at a time to check the identity of the member.
	checkSlot chan struct{}
}

// newIdentityVerifier returns the verifier for a Cluster. It returns nil if the Cluster was registered
// without an ID, or if the configuration has its own transport.
func newIdentityVerifier(cluster *clusterv1alpha1.Cluster, config *rest.Config, metrics *Metrics) (*identityVerifier, error) {
	if cluster.Spec.ID == "" || config.Transport != nil {
		return nil, nil
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: spec.apiEndpoint: %w", cluster.Name, err)
	}
	return &identityVerifier{
		cluster: cluster.Name, endpoint: config.Host, expectedID: cluster.Spec.ID, metrics: metrics,
		namespaceURL: base.JoinPath("api", "v1", "namespaces", metav1.NamespaceSystem), checkSlot: make(chan struct{}, 1),
	}, nil
}

// dialPurpose is the context key of requests that may open a connection.
type dialPurpose struct{}

const (
	// identityCheck is the purpose of a request that reads the identity of the member.
	identityCheck = "identity check"
	// withoutProof is the purpose of a request that needs no identity check before it, such as a health
	// probe. A connection that it opens must be proven before other requests use it.
	withoutProof = "without proof"
)

func withDialPurpose(ctx context.Context, purpose string) context.Context {
	return context.WithValue(ctx, dialPurpose{}, purpose)
}

// errNoProvenConnection reports that a request needs a new connection.
var errNoProvenConnection = errors.New("a new connection needs an identity check")

// wrapConfig makes the clients of a configuration verify the identity of the member.
func (i *identityVerifier) wrapConfig(config *rest.Config) {
	if i == nil {
		return
	}
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch ctx.Value(dialPurpose{}) {
		case identityCheck:
		case withoutProof:
			i.generation.Add(1)
		default:
			return nil, errNoProvenConnection
		}
		return dial(ctx, network, address)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
			if request.Context().Value(dialPurpose{}) != nil {
				return next.RoundTrip(request)
			}
			return i.roundTrip(next, request)
		}}
	})
}

// roundTrip sends a request over a proven connection. If the server closes each connection after its first
// response, no proven connection stays open. In that case, roundTrip sends the request over a new connection
// immediately after maxIdentityAttempts successful identity checks.
func (i *identityVerifier) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	var minSuccesses int64
	for range maxIdentityAttempts {
		if err := i.ensureProven(request.Context(), minSuccesses, next, request.Header); err != nil {
			return nil, err
		}
		minSuccesses = i.successes.Load() + 1
		response, err := next.RoundTrip(request)
		if !errors.Is(err, errNoProvenConnection) {
			return response, err
		}
		var ok bool
		if request, ok = prepareResend(request); !ok {
			return nil, fmt.Errorf("cluster %s: the request needs a new connection, but its body cannot be sent again after the identity check: retry the request", i.cluster)
		}
	}
	return next.RoundTrip(request.WithContext(withDialPurpose(request.Context(), withoutProof)))
}

// ensureProven checks the identity of the member, unless it is proven and at least minSuccesses checks
// succeeded.
func (i *identityVerifier) ensureProven(ctx context.Context, minSuccesses int64, next http.RoundTripper, header http.Header) error {
	isProven := func() bool {
		return i.proven.Load() == i.generation.Load()+1 && i.successes.Load() >= minSuccesses
	}
	if isProven() {
		return nil
	}
	select {
	case i.checkSlot <- struct{}{}:
		defer func() { <-i.checkSlot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if isProven() {
		return nil
	}
	return i.verify(ctx, next.RoundTrip, header)
}

// verify compares the UID of the namespace kube-system with the ID of the Cluster. If the member is another
// cluster, all earlier checks become invalid.
func (i *identityVerifier) verify(ctx context.Context, do func(*http.Request) (*http.Response, error), header http.Header) error {
	ctx = withDialPurpose(ctx, identityCheck)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.namespaceURL.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("cluster %s: reading its identity: %w", i.cluster, err)
	}
	for _, name := range []string{"Authorization", "User-Agent"} {
		if value := header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	generation := i.generation.Load()
	seen, err := readUID(do(request))
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return i.unknownError(err)
	case seen != i.expectedID:
		return i.mismatchError(seen)
	}
	i.proven.Store(generation + 1)
	i.successes.Add(1)
	i.metrics.countIdentityCheck(i.cluster, true)
	return nil
}

func (i *identityVerifier) unknownError(cause error) error {
	var refused *statusError
	message := fmt.Sprintf("cluster %s: the identity of the cluster at %s is unknown, so no request is sent to it: reading Namespace kube-system: ", i.cluster, i.endpoint)
	if errors.As(cause, &refused) {
		message += refused.Error() + "; let the account of Karmada in the member get that Namespace"
	} else {
		message += connectionCause(cause)
	}
	return &IdentityError{Identity: domain.IdentityCheck{UnknownCause: message}, message: message}
}

func (i *identityVerifier) mismatchError(seen string) error {
	i.generation.Add(1)
	i.metrics.countIdentityCheck(i.cluster, false)
	return &IdentityError{Identity: domain.IdentityCheck{OtherID: seen},
		message: domain.MismatchMessage(i.cluster, i.endpoint, i.expectedID, seen)}
}

// statusError reports a response with a status other than 200.
type statusError struct{ code int }

func (s *statusError) Error() string {
	return fmt.Sprintf("the response is %d %s", s.code, http.StatusText(s.code))
}

var errNoUID = errors.New("the response contains no valid UID")

func readUID(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, maxRejectionBody)
		return "", &statusError{response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxIdentityBytes))
	if err != nil {
		return "", err
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &found); err != nil || !domain.IsValidID(string(found.UID)) {
		return "", errNoUID
	}
	return string(found.UID), nil
}

// verifyIdentity checks the identity of the member for a probe.
func (m *Member) verifyIdentity(ctx context.Context) domain.IdentityCheck {
	if m.verifier == nil {
		return domain.IdentityCheck{}
	}
	err := m.verifier.verify(ctx, m.http.Do, nil)
	var identityErr *IdentityError
	switch {
	case err == nil:
		return domain.IdentityCheck{Proven: true}
	case errors.As(err, &identityErr):
		return identityErr.Identity
	default:
		return domain.IdentityCheck{UnknownCause: connectionCause(err)}
	}
}
