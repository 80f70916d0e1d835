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

	"karmada.io/karmada/internal/cli/place"
)

// meter reads what one member measured.
type meter struct {
	place   place.Place
	member  kubernetes.Interface
	metrics metricsclient.MetricsV1beta1Interface
	// namespace is where pods without a given namespace are looked for.
	namespace string
}

// errNotYet tells that there are objects and nothing was measured.
var errNotYet = errors.New("metrics not available yet: the metrics server measures once a minute or so, try again then")

// meter reaches a member and makes sure that somebody measures there.
func (o *options) meter(ctx context.Context, where place.Place) (m meter, err error) {
	m.place = where
	factory := o.Factory(&where, o.patience.RequestLimit())
	if err := place.Reach(ctx, factory, where); err != nil {
		return m, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return m, err
	}
	if m.member, err = kubernetes.NewForConfig(config); err != nil {
		return m, fmt.Errorf("making a client of %s: %w", where, err)
	}
	if m.metrics, err = metricsclient.NewForConfig(o.encoded(config)); err != nil {
		return m, fmt.Errorf("making a client for metrics of %s: %w", where, err)
	}
	if m.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return m, err
	}
	return m, m.checkServer(ctx)
}

// encoded is a configuration that asks for the encoding that the user wants.
func (o *options) encoded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if o.protobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	return config
}

// checkServer tells a member without a metrics server from one without metrics.
func (m *meter) checkServer(ctx context.Context) error {
	err := m.metrics.RESTClient().Get().AbsPath("/apis", metricsv1beta1.SchemeGroupVersion.String()).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("metrics API not available: the member serves no %s; install a metrics server in it", metricsv1beta1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("reaching the metrics server of %s: %w", m.place, err)
	}
	return nil
}
