package member

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/reconnect"
)

// Local is how a process that runs in a member reaches it: with a configuration
// of its own, whatever its Cluster says. It returns nil for a cluster that is
// reached as every other one, and an error for one that must not be taken for the
// member.
type Local func(cluster *clusterv1alpha1.Cluster) (*rest.Config, error)

// credentialsOf is the Secret of a cluster; one that is local needs none.
func (c *Clusters) credentialsOf(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	config, err := c.local(cluster)
	if err != nil || config != nil {
		return &corev1.Secret{}, err
	}
	return c.secret(ctx, cluster)
}

// configure makes the client configuration of a cluster.
func (c *Clusters) configure(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, shown *credentials) (*rest.Config, error) {
	own, err := c.local(cluster)
	if err != nil {
		return nil, err
	}
	if own == nil {
		return configFor(cluster, secret, c.options.Throttle, shown)
	}
	config := rest.CopyConfig(own)
	config.QPS, config.Burst, config.UserAgent = c.options.Throttle.QPS, c.options.Throttle.Burst, FieldManager
	if c.options.Throttle.QPS == 0 {
		config.QPS = -1
	}
	reconnect.Promptly(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withinTime(RequestTimeout, next) })
	return config, nil
}

func (c *Clusters) local(cluster *clusterv1alpha1.Cluster) (*rest.Config, error) {
	if c.options.Local == nil {
		return nil, nil
	}
	config, err := c.options.Local(cluster)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", cluster.Name, err)
	}
	return config, nil
}
