package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const availablePollInterval = 50 * time.Millisecond

// APIServiceNames returns the names of the APIServices among the given objects.
func APIServiceNames(objects []client.Object) (names []string) {
	for _, object := range objects {
		if object.GetObjectKind().GroupVersionKind().Kind == "APIService" {
			names = append(names, object.GetName())
		}
	}
	return names
}

// AwaitAPIServices waits until the API server serves the APIs of the named APIServices and lists them in
// discovery. It does not rely on the Available condition alone, because an earlier start may have written
// it. The timeout applies to each APIService separately.
func AwaitAPIServices(ctx context.Context, karmada *rest.Config, timeout time.Duration, names ...string) error {
	services, err := aggregator.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	for _, name := range names {
		// An APIService is named <version>.<group>.
		version, group, _ := strings.Cut(name, ".")
		var lastErr error
		err := wait.PollUntilContextTimeout(ctx, availablePollInterval, timeout, true, func(ctx context.Context) (bool, error) {
			if lastErr = verifyAvailable(ctx, services, name); lastErr == nil {
				lastErr = verifyDiscovered(ctx, services.Discovery(), schema.GroupVersion{Group: group, Version: version})
			}
			return lastErr == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the API group %s: %w", group, errors.Join(err, lastErr))
		}
	}
	return nil
}

var (
	errNotAvailable  = errors.New("the APIService has no Available condition yet")
	errNotDiscovered = errors.New("the API server does not list the resources of the group yet")
)

// DeleteAPIServices deletes the named APIServices if they exist. An APIService without a server must not
// remain, because the API server would report its group as unavailable, which blocks the deletion of
// namespaces.
func DeleteAPIServices(ctx context.Context, karmada *rest.Config, names ...string) error {
	services, err := aggregator.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	for _, name := range names {
		err := services.ApiregistrationV1().APIServices().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the APIService %s: %w", name, err)
		}
	}
	return nil
}

// verifyDiscovered returns an error unless the version's resources are listed in both discovery documents:
// the version's own document and the aggregated discovery, which most clients use.
func verifyDiscovered(ctx context.Context, karmada discovery.DiscoveryInterface, version schema.GroupVersion) error {
	if err := karmada.RESTClient().Get().AbsPath("/apis/" + version.String()).Do(ctx).Error(); err != nil {
		return fmt.Errorf("listing the resources of the group: %w", err)
	}
	_, lists, err := discovery.ServerGroupsAndResources(karmada)
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		err = failed.Groups[version]
	}
	isListed := func(list *metav1.APIResourceList) bool {
		return list.GroupVersion == version.String() && len(list.APIResources) > 0
	}
	if err == nil && !slices.ContainsFunc(lists, isListed) {
		err = errNotDiscovered
	}
	return err
}

func verifyAvailable(ctx context.Context, client aggregator.Interface, name string) error {
	service, err := client.ApiregistrationV1().APIServices().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available {
			continue
		}
		if condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
		return errors.New(condition.Message)
	}
	return errNotAvailable
}
