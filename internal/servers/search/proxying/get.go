package proxying

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"karmada.io/karmada/internal/domain/clusterjson"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// holder is a cluster that has the object of a request.
type holder struct {
	cluster string
	// object is the cached object. It is nil if the cluster was asked because its objects are not
	// cached yet.
	object *objectcache.Object
	// isStale means that the cached object may be outdated, for the given reason.
	isStale bool
	reason  string
}

// get answers a read of one object.
func (r *request) get() error {
	ctx := r.req.Context()
	found, err := r.findHolder(ctx, r.info.Verb)
	if err != nil {
		return err
	}
	query := r.req.URL.Query()
	version := combinedversion.Parse(query.Get("resourceVersion"))
	if version.String() == "0" && found.object != nil && !r.format.isTable {
		return r.writeCached(found)
	}
	query.Del("resourceVersion")
	if own := version.For(found.cluster); own != "" {
		query.Set("resourceVersion", own)
	}
	body, err := r.fetchObject(ctx, found.cluster, r.path, query)
	if err != nil {
		return err
	}
	return r.writeObject(body)
}

// writeCached writes a cached object.
func (r *request) writeCached(found *holder) error {
	if found.isStale {
		r.warnings.add(found.cluster, found.reason)
	}
	body, err := found.object.AppendJSON(nil)
	if err != nil {
		return newUnavailable("cluster %q: %v", found.cluster, err)
	}
	if body, err = clusterjson.WithVersion(nil, body, clusterjson.VersionOf(found.cluster, found.object.ResourceVersion())); err != nil {
		return newUnavailable("cluster %q: %v", found.cluster, err)
	}
	if r.format.isPartial {
		if body, err = clusterjson.ToPartial(nil, body); err != nil {
			return newUnavailable("cluster %q: %v", found.cluster, err)
		}
	}
	return r.writeObject(body)
}

// writeObject writes a JSON document as the response.
func (r *request) writeObject(body []byte) error {
	mediaType := jsonMediaType
	if r.format.isYAML {
		converted, err := yaml.JSONToYAML(body)
		if err != nil {
			return newUnavailable("converting the response to YAML: %v", err)
		}
		body, mediaType = converted, yamlMediaType
	}
	r.warnings.write(r.w)
	r.w.Header().Set("Content-Type", mediaType)
	r.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(body)
	return nil
}

// findHolder returns the only cluster that has the object of the request, and in which the caller
// may use a verb on it. The error is NotFound if there is none, Conflict if there are several, and
// ServiceUnavailable if it is unknown. A write needs an answer of all clusters, because a cluster that
// does not answer may have the object, too.
func (r *request) findHolder(ctx context.Context, verb string) (*holder, error) {
	found, unknown := r.lookUp(ctx)
	holders := r.permitted(ctx, found, verb, unknown)
	switch {
	case len(holders) > 1:
		names := make([]string, len(holders))
		for i := range holders {
			names[i] = holders[i].cluster
		}
		return nil, newError(http.StatusConflict, metav1.StatusReasonConflict,
			"ambiguous objects in clusters [%s]: use %s for one of them", strings.Join(names, ", "), memberproxy.OneClusterPath)
	case len(unknown) > 0 && (len(holders) == 0 || r.isStrict || !r.isRead()):
		clusters := slices.Sorted(maps.Keys(unknown))
		return nil, memberproxy.NewUnknownHolderError(r.info, clusters, fmt.Sprintf("cluster %q: %s", clusters[0], unknown[clusters[0]]))
	case len(holders) == 1:
		for cluster, reason := range unknown {
			r.warnings.add(cluster, "it may have an object of the same name: "+reason)
		}
		return &holders[0], nil
	}
	if r.isDeniedEverywhere(ctx, verb) {
		return nil, r.denial("", verb, r.objectNamespace())
	}
	return nil, apierrors.NewNotFound(r.groupResource(), r.info.Name)
}

// isDeniedEverywhere reports whether every cluster denies the caller a verb on the object of the
// request, whether the object exists or not.
func (r *request) isDeniedEverywhere(ctx context.Context, verb string) bool {
	all := r.participants(r.kind.Snapshot())
	denied := make([]bool, len(all))
	var reviews sync.WaitGroup
	for i, p := range all {
		reviews.Go(func() {
			ok, err := r.isAllowed(ctx, p.cluster, verb)
			denied[i] = err == nil && !ok
		})
	}
	reviews.Wait()
	return len(all) > 0 && !slices.Contains(denied, false)
}

// isAllowed reports whether the caller may use a verb on the object of the request, or on its
// subresource, in a cluster.
func (r *request) isAllowed(ctx context.Context, cluster, verb string) (bool, error) {
	resource := r.kind.GroupVersionResource()
	if r.info.Subresource != "" {
		resource.Resource += "/" + r.info.Subresource
	}
	namespace := r.objectNamespace()
	if r.info.Resource == "namespaces" && r.info.APIGroup == "" {
		// An API server authorizes requests for a Namespace in this namespace.
		namespace = r.info.Name
	}
	return r.Handler.options.Rights.Allowed(ctx, r.caller, cluster, verb, resource, namespace, r.info.Name)
}

// isRead reports whether the request changes nothing.
func (r *request) isRead() bool { return memberproxy.IsRead(r.req, r.info) }

// lookUp returns the clusters whose cache has the object, and the clusters whose objects are
// unknown. It asks those clusters whose objects are not cached yet. Their response is enough for a
// read, but not for a write, because a cluster can claim any object for which a user asks.
//
// For a write, it also asks the clusters whose cache does not have the object. If a cluster stops
// responding, the watch of the cluster fails only after several seconds, and until then the cache may
// lack objects of the cluster.
func (r *request) lookUp(ctx context.Context) (found []holder, unknown warnings) {
	var asked []*participant
	unknown = warnings{}
	for _, p := range r.participants(r.awaitListed(ctx)) {
		object, problem := p.Get(r.objectNamespace(), r.info.Name), p.problem()
		state, _, _ := p.State()
		switch {
		case state == objectcache.Waiting:
			asked = append(asked, p)
		case object != nil && object.UID() == "" && !r.isRead():
			unknown.add(p.cluster, "the object has no UID")
		case object != nil && problem != nil:
			found = append(found, holder{cluster: p.cluster, object: object, isStale: true, reason: problem.Error()})
		case object != nil:
			found = append(found, holder{cluster: p.cluster, object: object})
		case problem != nil:
			unknown.add(p.cluster, problem.Error())
		case !r.isRead():
			asked = append(asked, p)
		}
	}
	return r.ask(ctx, asked, found, unknown), unknown
}

// ask asks clusters whose cache does not have the object, and adds those that may have it to found or to
// unknown.
func (r *request) ask(ctx context.Context, asked []*participant, found []holder, unknown warnings) []holder {
	errs := make([]error, len(asked))
	var lookups sync.WaitGroup
	for i, p := range asked {
		lookups.Go(func() { errs[i] = r.probe(ctx, p.cluster) })
	}
	lookups.Wait()
	for i, p := range asked {
		switch {
		case errs[i] == nil && r.isRead():
			found = append(found, holder{cluster: p.cluster})
		case errs[i] == nil && p.problem() != nil:
			unknown.add(p.cluster, p.problem().Error())
		case errs[i] == nil:
			unknown.add(p.cluster, "it returns the object, but the cache does not have it yet")
		case !r.provesAbsence(errs[i]):
			unknown.add(p.cluster, reasonOf(p.cluster, errs[i]))
		}
	}
	return found
}

// provesAbsence reports whether the error of a cluster is the Status of an API server which says that the
// caller does not find the object there. A gateway before the cluster responds without a Status.
func (r *request) provesAbsence(err error) bool {
	status := asAPIStatus(err)
	if status == nil {
		return false
	}
	details := status.Status().Details
	return status.Status().Reason == metav1.StatusReasonForbidden ||
		status.Status().Reason == metav1.StatusReasonNotFound && details != nil && details.Name == r.info.Name
}

// probe returns nil if a cluster has the object of the request.
func (r *request) probe(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Lookup)
	defer cancel()
	whole := *r
	whole.format.accept = jsonMediaType
	body, err := whole.fetch(ctx, cluster, r.collectionPath(r.objectNamespace())+"/"+r.info.Name, nil)
	if err != nil {
		return err
	}
	object, err := clusterjson.ParseIdentity(body)
	if err == nil && (object.Kind != r.kind.GroupVersionKind() || object.Namespace != r.objectNamespace() || object.Name != r.info.Name) {
		err = errors.New("it is another object")
	}
	if err != nil {
		return newUnavailable("cluster %q: its response is not the requested object: %v", cluster, err)
	}
	return nil
}

// permitted returns those holders in which the caller may use a verb on the object. A holder that
// does not answer is added to unknown.
func (r *request) permitted(ctx context.Context, found []holder, verb string, unknown warnings) []holder {
	var holders []holder
	for _, h := range found {
		ok, err := r.isAllowed(ctx, h.cluster, verb)
		switch {
		case err != nil:
			unknown.add(h.cluster, reasonOf(h.cluster, err))
		case ok:
			holders = append(holders, h)
		}
	}
	return holders
}

// objectNamespace returns the namespace of the object in the cache. The request info of a Namespace
// has its name as the namespace.
func (r *request) objectNamespace() string { return r.requestedNamespace() }

func isStatus(err error) bool { return asAPIStatus(err) != nil }

// asAPIStatus returns the Status in an error, or nil.
func asAPIStatus(err error) apierrors.APIStatus {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status
	}
	return nil
}
