package proxying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// holder is a cluster that has the requested object.
type holder struct {
	cluster string
	// object is the cached object. It is nil if the cluster itself returned the object, because the
	// cluster's objects are not cached yet.
	object *objectcache.Object
	// problem is the reason why the cached object may be outdated, or nil.
	problem error
}

// get serves a request to read one object.
func (r *request) get() error {
	ctx := r.req.Context()
	found, err := r.findHolder(ctx, r.info.Verb)
	if err != nil {
		return err
	}
	query := r.req.URL.Query()
	version := combinedversion.Parse(query.Get("resourceVersion"))
	var body []byte
	if version.String() == "0" && found.object != nil && !r.format.IsTable {
		body, err = r.cachedObject(found)
	} else {
		query.Del("resourceVersion")
		if own := version.For(found.cluster); own != "" {
			query.Set("resourceVersion", own)
		}
		if body, err = r.fetch(ctx, found.cluster, r.path, query); err == nil {
			body, err = rewriteObject(found.cluster, body)
		}
	}
	if err != nil {
		return asStatus(found.cluster, err)
	}
	mediaType := fanout.JSON
	if r.format.IsYAML {
		mediaType = fanout.YAML
		if body, err = yaml.JSONToYAML(body); err != nil {
			return fanout.NewUnavailableError("converting the response to YAML: %v", err)
		}
	}
	r.warnings.WriteTo(r.w.Header())
	r.w.Header().Set("Content-Type", mediaType)
	r.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = r.w.Write(body)
	return nil
}

// cachedObject returns the cached object in the requested format.
func (r *request) cachedObject(found *holder) ([]byte, error) {
	if found.problem != nil {
		r.warn(found.cluster, "%v", found.problem)
	}
	body, err := found.object.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	version := combinedversion.New(map[string]string{found.cluster: found.object.ResourceVersion()})
	if body, err = fanout.WithVersion(nil, body, version); err != nil || !r.format.IsPartial {
		return body, err
	}
	return fanout.ToPartial(nil, body)
}

// findHolder returns the only cluster that has the requested object and in which the caller may use the
// verb on it. The error is NotFound if there is none, Conflict if there are several, and
// ServiceUnavailable if it is unknown. A write needs all clusters' responses, because a cluster that
// does not respond may have the object, too.
func (r *request) findHolder(ctx context.Context, verb string) (*holder, error) {
	found, unknown := r.lookUp(ctx)
	var holders []holder
	var names []string
	for _, h := range found {
		isAllowed, err := r.isAllowed(ctx, h.cluster, verb)
		switch {
		case err != nil:
			unknown.Add(h.cluster, reasonOf(h.cluster, err))
		case isAllowed:
			holders, names = append(holders, h), append(names, h.cluster)
		}
	}
	switch clusters := unknown.Clusters(); {
	case len(holders) > 1:
		return nil, fanout.NewStatusError(http.StatusConflict, metav1.StatusReasonConflict,
			"ambiguous objects in clusters [%s]: use %s for one of them", strings.Join(names, ", "), fanout.OneClusterPath)
	case len(clusters) > 0 && (len(holders) == 0 || r.isStrict || !r.isRead()):
		return nil, fanout.NewUnknownObjectError(r.info, clusters, fmt.Sprintf("cluster %q: %s", clusters[0], unknown[clusters[0]]))
	case len(holders) == 1:
		for cluster, reason := range unknown {
			r.warn(cluster, "it may have an object of the same name: %s", reason)
		}
		return &holders[0], nil
	case r.isDeniedEverywhere(ctx, verb):
		return nil, r.newDenial("", verb, r.namespace())
	}
	return nil, apierrors.NewNotFound(fanout.GroupResource(r.info), r.info.Name)
}

// isDeniedEverywhere reports whether every cluster denies the caller the verb on the requested object,
// regardless of whether the object exists.
func (r *request) isDeniedEverywhere(ctx context.Context, verb string) bool {
	all := r.participants(r.kind.Snapshot())
	denied := make([]bool, len(all))
	fanout.InParallel(len(all), func(i int) {
		isAllowed, err := r.isAllowed(ctx, all[i].cluster, verb)
		denied[i] = err == nil && !isAllowed
	})
	return len(all) > 0 && !slices.Contains(denied, false)
}

// isAllowed reports whether the caller may use the verb on the requested object, or its subresource, in
// the cluster.
func (r *request) isAllowed(ctx context.Context, cluster, verb string) (bool, error) {
	resource := r.kind.GroupVersionResource()
	if r.info.Subresource != "" {
		resource.Resource += "/" + r.info.Subresource
	}
	namespace := r.namespace()
	if r.info.Resource == "namespaces" && r.info.APIGroup == "" {
		// An API server authorizes a request for a Namespace in the namespace itself.
		namespace = r.info.Name
	}
	return r.Handler.options.Permissions.Allowed(ctx, r.caller, cluster, verb, resource, namespace, r.info.Name)
}

// isRead reports whether the request changes nothing.
func (r *request) isRead() bool { return fanout.IsRead(r.req, r.info) }

// lookUp returns the clusters whose cache has the object, and the reasons why other clusters may have
// it. It requests the object from those clusters whose objects are not cached yet. Their responses are
// sufficient for a read, but not for a write, because a cluster can claim to have any object that a
// user requests.
//
// For a write, lookUp also requests the object from the clusters whose cache does not have it. If a
// cluster stops responding, its watch fails only after several seconds, and until then the cache may
// lack objects.
func (r *request) lookUp(ctx context.Context) (found []holder, unknown fanout.Warnings) {
	var uncached []*participant
	unknown = fanout.Warnings{}
	for _, p := range r.participants(r.awaitListed(ctx)) {
		object, problem := p.Get(r.namespace(), r.info.Name), p.problem()
		state, _, _ := p.State()
		switch {
		case state == objectcache.Waiting:
			uncached = append(uncached, p)
		case object != nil && object.UID() == "" && !r.isRead():
			unknown.Add(p.cluster, "the object has no UID")
		case object != nil:
			found = append(found, holder{p.cluster, object, problem})
		case problem != nil:
			unknown.Add(p.cluster, problem.Error())
		case !r.isRead():
			uncached = append(uncached, p)
		}
	}
	hasObject, errs := make([]bool, len(uncached)), make([]error, len(uncached))
	fanout.InParallel(len(uncached), func(i int) { hasObject[i], errs[i] = r.probe(ctx, uncached[i].cluster) })
	for i, p := range uncached {
		switch {
		case errs[i] != nil:
			unknown.Add(p.cluster, reasonOf(p.cluster, errs[i]))
		case !hasObject[i]:
		case r.isRead():
			found = append(found, holder{cluster: p.cluster})
		case p.problem() != nil:
			unknown.Add(p.cluster, p.problem().Error())
		default:
			unknown.Add(p.cluster, "it returns the object, but the cache does not have it yet")
		}
	}
	return found, unknown
}

// probe reports whether the cluster has the requested object. An error means that this is unknown.
func (r *request) probe(ctx context.Context, cluster string) (hasObject bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Lookup)
	defer cancel()
	code, body, err := r.read(ctx, cluster, fanout.ResourcePath(r.info, r.namespace(), r.info.Name), fanout.JSON, nil)
	switch {
	case apierrors.IsForbidden(err):
		return false, nil // the control plane is not permitted to impersonate the caller
	case err != nil:
		return false, err
	case fanout.IsStatusAbout(r.info, code, body):
		return false, nil
	case code != http.StatusOK:
		return false, responseError(cluster, code, body)
	}
	object, err := fanout.ParseRequestedObject(r.info, body)
	if err == nil && object.GroupVersionKind() != r.kind.GroupVersionKind() {
		err = errors.New("its response is another kind of object")
	}
	return err == nil, err
}

// rewriteObject returns a copy of an object, or of a table with one row, that names its cluster.
func rewriteObject(cluster string, body []byte) ([]byte, error) {
	if !json.Valid(body) {
		return nil, errors.New("its response is no JSON")
	}
	return style.RewriteObject(cluster, body)
}
