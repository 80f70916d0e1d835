package top

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"karmada.io/karmada/internal/cli/targetcluster"
)

// metricsReader reads the metrics of one member.
type metricsReader struct {
	place   targetcluster.Target
	member  kubernetes.Interface
	metrics metricsclient.MetricsV1beta1Interface
	// namespace is the namespace that is used if the user named none.
	namespace string
}

// errNoMetricsYet means that there are objects, but no metrics of these objects.
var errNoMetricsYet = errors.New("metrics not available yet: the metrics server collects them about once a minute, try again later")

// newMetricsReader connects to a member and checks that it has a metrics server.
func (o *options) newMetricsReader(ctx context.Context, target targetcluster.Target) (m metricsReader, err error) {
	m.place = target
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if err := targetcluster.CheckReachable(ctx, factory, target); err != nil {
		return m, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return m, err
	}
	if m.member, err = kubernetes.NewForConfig(config); err != nil {
		return m, fmt.Errorf("creating a client of %s: %w", target, err)
	}
	if m.metrics, err = metricsclient.NewForConfig(o.withEncoding(config)); err != nil {
		return m, fmt.Errorf("creating a metrics client of %s: %w", target, err)
	}
	if m.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return m, err
	}
	return m, m.checkMetricsServer(ctx)
}

// withEncoding returns a configuration with the encoding that the user chose.
func (o *options) withEncoding(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if o.protobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	return config
}

// checkMetricsServer returns an error if the member has no metrics server.
func (m *metricsReader) checkMetricsServer(ctx context.Context) error {
	err := m.metrics.RESTClient().Get().AbsPath("/apis", metricsv1beta1.SchemeGroupVersion.String()).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("metrics API not available: the member does not serve %s; install a metrics server in it", metricsv1beta1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("reaching the metrics server of %s: %w", m.place, err)
	}
	return nil
}
