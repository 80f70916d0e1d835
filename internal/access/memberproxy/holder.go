package memberproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/clusterjson"
	"karmada.io/karmada/internal/domain/conditions"
)

// OneClusterPath is the path of the proxy to one cluster, for messages.
var OneClusterPath = "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/NAME/proxy"

// IsRead reports whether a request for a named object only reads. Streams into an object write,
// also those that begin with a GET request.
func IsRead(req *http.Request, info *genericrequest.RequestInfo) bool {
	switch info.Subresource {
	case "attach", "exec", "portforward", "proxy":
		return false
	}
	return info.Verb == "get" && !isUpgrade(req)
}

// holder is a cluster that returned the object of a request.
type holder struct {
	client *memberClient
	object clusterjson.Identity
}

// forwardToHolder forwards a request to the only cluster that has the object. A write needs the
// response of every cluster, because a cluster that does not respond may have the object, too.
func (e *allClustersHandler) forwardToHolder(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) {
	responses, err := e.fanOut(req.Context(), fanoutRequest{
		path: objectPath(info), accept: "application/json",
		maxBytes: e.proxy.memory.lookup, timeout: e.proxy.timeouts.lookup, keepBody: true,
	})
	if err != nil {
		e.responder.Error(err)
		return
	}
	found := findHolders(responses, info)
	discardAll(responses)
	target, err := e.proxy.chooseHolder(req, info, found, responses)
	if err != nil {
		e.responder.Error(err)
		return
	}
	addWarnings(w, responses)
	(&forwarder{client: target, path: e.path, responder: e.responder}).ServeHTTP(w, req)
}

// findHolders returns the clusters that returned the requested object. A cluster whose response
// proves neither that it has the object nor that it does not have the object gets an error.
func findHolders(responses []clusterResponse, info *genericrequest.RequestInfo) []holder {
	var found []holder
	for i := range responses {
		response := &responses[i]
		switch {
		case response.err != nil:
		case response.code == http.StatusOK:
			object, err := clusterjson.ParseIdentity(response.body)
			if err == nil && !isRequested(object, info) {
				err = errors.New("it is another object")
			}
			if err != nil {
				response.err = fmt.Errorf("cluster %q is omitted: its response is not the requested object: %w", response.cluster, err)
				continue
			}
			found = append(found, holder{response.client, object})
		}
	}
	markUnknown(responses, info)
	return found
}

// markUnknown sets the error of each cluster whose error response does not prove that the cluster has
// nothing of what is requested, because the response can be that of a gateway before the cluster.
func markUnknown(responses []clusterResponse, info *genericrequest.RequestInfo) {
	for i := range responses {
		response := &responses[i]
		if response.err == nil && response.code != http.StatusOK && !provesAbsence(response, info) {
			response.err = fmt.Errorf("cluster %q is omitted: its response with code %d is not that of an API server about the request",
				response.cluster, response.code)
		}
	}
}

// isRequested reports whether an object is that of a request. The request does not contain the kind.
func isRequested(object clusterjson.Identity, info *genericrequest.RequestInfo) bool {
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	return object.Kind.GroupVersion() == version && object.Kind.Kind != "" &&
		object.Namespace == objectNamespace(info) && object.Name == info.Name
}

// provesAbsence reports whether an error response says that the caller does not find the object, or any
// object of a list, in the cluster: it is the Status of an API server, or the cluster does not serve the resource. Otherwise it
// can be the response of a gateway before the cluster.
//
// A group version that status.apiEnablements does not list is not served only if the list is complete.
// The list is empty or partial while the discovery of the cluster fails, as behind such a gateway.
func provesAbsence(response *clusterResponse, info *genericrequest.RequestInfo) bool {
	var status metav1.Status
	isStatus := json.Unmarshal(response.body, &status) == nil && status.Kind == "Status"
	if response.code != http.StatusNotFound || isStatus && status.Details != nil && status.Details.Name == info.Name {
		return isStatus
	}
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}.String()
	for _, api := range response.client.cluster.Status.APIEnablements {
		if api.GroupVersion == version {
			isServed := func(served clusterv1alpha1.APIResource) bool { return served.Name == info.Resource }
			return !slices.ContainsFunc(api.Resources, isServed)
		}
	}
	return conditions.HasStatus(response.client.cluster.Status.Conditions,
		clusterv1alpha1.ClusterConditionCompleteAPIEnablements, metav1.ConditionTrue)
}

// chooseHolder returns the cluster to which a request is forwarded.
func (p *Proxy) chooseHolder(
	req *http.Request, info *genericrequest.RequestInfo, found []holder, responses []clusterResponse,
) (*memberClient, error) {
	isRead, unknown := IsRead(req, info), unknownClusters(responses)
	switch {
	case len(found) > 1:
		names := make([]string, len(found))
		for i := range found {
			names[i] = found[i].client.cluster.Name
		}
		return nil, newStatusError(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: %s", strings.Join(names, ","))
	case len(unknown) > 0 && (len(found) == 0 || !isRead):
		return nil, NewUnknownHolderError(info, unknown, responses[slices.IndexFunc(responses, isUnknown)].err.Error())
	case len(found) == 0:
		return nil, newStatusError(http.StatusNotFound, metav1.StatusReasonNotFound,
			"resource not found or don't have permission to get it")
	case isRead:
		return found[0].client, nil
	}
	return found[0].client, p.checkDelivery(req.Context(), info, found[0])
}

func isUnknown(response clusterResponse) bool { return response.err != nil }

// unknownClusters returns the names of the clusters without a valid response.
func unknownClusters(responses []clusterResponse) []string {
	var names []string
	for _, response := range responses {
		if isUnknown(response) {
			names = append(names, response.cluster)
		}
	}
	return names
}

// NewUnknownHolderError returns the error for an object that may be in clusters that do not respond.
// reason is the problem of the first one.
func NewUnknownHolderError(info *genericrequest.RequestInfo, clusters []string, reason string) error {
	err := newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"cannot %s %s: it is unknown whether clusters [%s] have it: %s: to address one cluster, use %s, or karmadactl with --cluster",
		info.Verb, describeObject(info), conditions.LimitMessage(strings.Join(clusters, ", ")), reason, OneClusterPath)
	// Without RetryAfterSeconds, clients do not repeat a request that fails until the cluster responds.
	err.ErrStatus.Details = &metav1.StatusDetails{Group: info.APIGroup, Kind: info.Resource, Name: info.Name}
	return err
}

// newUnknownListError returns the error for a list that no cluster returned, although at least one of
// them may have objects.
func newUnknownListError(info *genericrequest.RequestInfo, responses []clusterResponse) error {
	return newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"cannot list %s: no cluster returns a list, and it is unknown whether clusters [%s] have objects: %s: to address one cluster, use %s, or karmadactl with --cluster",
		groupResource(info), conditions.LimitMessage(strings.Join(unknownClusters(responses), ", ")),
		responses[slices.IndexFunc(responses, isUnknown)].err.Error(), OneClusterPath)
}

// describeObject returns the object of a request, for messages.
func describeObject(info *genericrequest.RequestInfo) string {
	object := fmt.Sprintf("%s %q", groupResource(info), info.Name)
	if namespace := objectNamespace(info); namespace != "" {
		object += fmt.Sprintf(" in namespace %q", namespace)
	}
	return object
}

// objectNamespace returns the namespace of the requested object. The request info of a Namespace
// has its name as the namespace.
func objectNamespace(info *genericrequest.RequestInfo) string {
	if info.Resource == "namespaces" && info.APIGroup == "" {
		return ""
	}
	return info.Namespace
}

// objectPath returns the path of the request that reads the object, without a subresource, because
// reading a subresource can have side effects.
func objectPath(info *genericrequest.RequestInfo) string {
	parts := []string{"", info.APIPrefix}
	if info.APIGroup != "" {
		parts = append(parts, info.APIGroup)
	}
	parts = append(parts, info.APIVersion)
	if namespace := objectNamespace(info); namespace != "" {
		parts = append(parts, "namespaces", namespace)
	}
	return strings.Join(append(parts, info.Resource, info.Name), "/")
}

func groupResource(info *genericrequest.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}
