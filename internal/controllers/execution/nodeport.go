package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

const (
	// servicePageSize and maxServicePages limit the search for the Service that uses a node port.
	servicePageSize = 500
	maxServicePages = 20
)

// describeNodePortClash returns a hint about the Services of the member that use the node ports of a
// rejected Service. It returns an empty string for other rejections.
func describeNodePortClash(ctx context.Context, d *delivery, manifest *unstructured.Unstructured, rejection error) string {
	ports := work.NodePorts(manifest)
	if len(ports) == 0 || !apierrors.IsInvalid(rejection) || !strings.Contains(rejection.Error(), "port is already allocated") {
		return ""
	}
	remedy := fmt.Sprintf("set another port with an override policy, or set the annotation %s=%s on the Service, so that each cluster allocates its own node ports",
		workv1alpha1.NodePortAllocationAnnotation, workv1alpha1.NodePortAllocationMember)
	holders, err := findNodePortHolders(ctx, d.member.Client(), ports)
	if err != nil || len(holders) == 0 {
		return "; " + remedy
	}
	return fmt.Sprintf("; %s: %s", strings.Join(holders, ", "), remedy)
}

// findNodePortHolders returns a text for each Service of the member that uses one of the node ports.
// It reads from the API server, because caches contain only objects with the label of Karmada.
func findNodePortHolders(ctx context.Context, reader client.Reader, ports []int64) ([]string, error) {
	var holders []string
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	for range maxServicePages {
		if err := reader.List(ctx, services, client.Limit(servicePageSize), client.Continue(services.GetContinue())); err != nil {
			return nil, err
		}
		for i := range services.Items {
			service := &services.Items[i]
			for _, port := range work.NodePorts(service) {
				if slices.Contains(ports, port) {
					holders = append(holders, fmt.Sprintf("node port %d is used by Service %s/%s", port, service.GetNamespace(), service.GetName()))
				}
			}
		}
		if services.GetContinue() == "" {
			break
		}
	}
	return holders, nil
}
