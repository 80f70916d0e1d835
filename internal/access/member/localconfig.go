package member

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/reconnect"
)

// LocalConfigFunc returns the client configuration for a process that runs in a member. The
// configuration does not depend on the Cluster of the member. The function returns nil for a
// cluster to which the process connects as the Cluster describes, and an error for a Cluster that
// must not be used for the member in which the process runs.
type LocalConfigFunc func(cluster *clusterv1alpha1.Cluster) (*rest.Config, error)

// secretOrEmpty returns the Secret of a cluster, or an empty Secret if the process runs in the
// member.
func (c *Clusters) secretOrEmpty(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	config, err := c.localConfig(cluster)
	if err != nil || config != nil {
		return &corev1.Secret{}, err
	}
	return c.secretFor(ctx, cluster)
}

// newConfig returns the client configuration for a cluster.
func (c *Clusters) newConfig(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, creds *credentials) (*rest.Config, error) {
	local, err := c.localConfig(cluster)
	if err != nil {
		return nil, err
	}
	if local == nil {
		config, err := newPushConfig(cluster, secret, c.options.Throttle, creds)
		if err == nil && agentaddress.Guards(cluster) {
			guardAddresses(config, cluster, c.options.AgentAddresses)
		}
		return config, err
	}
	config := rest.CopyConfig(local)
	config.QPS, config.Burst, config.UserAgent = c.options.Throttle.QPS, c.options.Throttle.Burst, FieldManager
	if c.options.Throttle.QPS == 0 {
		config.QPS = -1
	}
	reconnect.SetPingTimeouts(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withTimeout(RequestTimeout, next) })
	return config, nil
}

// guardAddresses makes the client check the addresses that the agent of the cluster chooses. The client
// does not use a proxy of the environment, because it could not check the addresses to which such a
// proxy connects.
func guardAddresses(config *rest.Config, cluster *clusterv1alpha1.Cluster, guard *agentaddress.Guard) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	config.Dial = guard.Dialer(dialer, cluster.Name, agentaddress.FieldOf(cluster.Spec.ProxyURL))
	if config.Proxy == nil {
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
}

func (c *Clusters) localConfig(cluster *clusterv1alpha1.Cluster) (*rest.Config, error) {
	if c.options.LocalConfig == nil {
		return nil, nil
	}
	config, err := c.options.LocalConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", cluster.Name, err)
	}
	return config, nil
}
