package install

import (
	"context"
	"errors"
	"fmt"
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
)

const availablePollInterval = 50 * time.Millisecond

// AwaitAPIService waits until the API of an APIService is served and is in the discovery. The name of
// an APIService is its version and its group. The condition of the APIService alone does not suffice,
// because an earlier start may have written it.
func AwaitAPIService(ctx context.Context, karmada *rest.Config, name string, timeout time.Duration) error {
	versionName, group, _ := strings.Cut(name, ".")
	version := schema.GroupVersion{Group: group, Version: versionName}
	services, err := aggregator.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, availablePollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		if lastErr = checkAvailable(ctx, services, name); lastErr == nil {
			lastErr = checkDiscovered(ctx, groups, version)
		}
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API group %s: %w", version.Group, errors.Join(err, lastErr))
	}
	return nil
}

var (
	errNotAvailable  = errors.New("the APIService has no Available condition yet")
	errNotDiscovered = errors.New("the API server does not list the resources of the group yet")
)

// DeleteAPIServices deletes APIServices. The absence of one is no error. The API server reports the
// group of an APIService without a server as unavailable, which stops the deletion of namespaces.
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

// checkDiscovered returns an error until two documents list the resources of a version: the
// document of the version, and the aggregated discovery that most clients use.
func checkDiscovered(ctx context.Context, client *discovery.DiscoveryClient, version schema.GroupVersion) error {
	if err := client.RESTClient().Get().AbsPath("/apis/" + version.String()).Do(ctx).Error(); err != nil {
		return fmt.Errorf("listing the resources of the group: %w", err)
	}
	_, resources, failed, err := client.GroupsAndMaybeResources()
	switch {
	case err != nil:
		return fmt.Errorf("listing all resources: %w", err)
	case failed[version] != nil:
		return failed[version]
	case resources != nil && (resources[version] == nil || len(resources[version].APIResources) == 0):
		return errNotDiscovered
	}
	return nil
}

func checkAvailable(ctx context.Context, client aggregator.Interface, name string) error {
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
