package proxying

import (
	"k8s.io/apimachinery/pkg/labels"

	"karmada.io/karmada/internal/domain/clusterjson"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// listCached answers a list from the cache.
func (r *request) listCached() error {
	snapshot := r.awaitListed(r.req.Context())
	clusters, err := r.readable(r.req.Context(), r.participants(snapshot), "list")
	if err != nil {
		return err
	}
	out, versions := newListWriter(r), map[string]string{}
	if kind := r.kind.GroupVersionKind(); r.format.isPartial {
		out.start("PartialObjectMetadataList", "meta.k8s.io/v1", nil)
	} else if len(snapshot.Clusters()) > 0 {
		out.start(kind.Kind+"List", kind.GroupVersion().String(), nil)
	}
	for _, p := range clusters {
		if version := p.ResourceVersion(); version != "" {
			versions[p.cluster] = version
		}
		if err := r.writeCachedObjects(out, p); err != nil {
			return out.abort(err)
		}
	}
	return out.finish(combinedversion.New(versions), "")
}

// writeCachedObjects writes the selected objects of a cluster.
func (r *request) writeCachedObjects(out *listWriter, p *participant) error {
	var text, partial []byte
	for object := range p.All(p.namespace) {
		selected, err := r.selects(p, object)
		if err != nil {
			return err
		}
		if !selected {
			continue
		}
		if text, err = object.AppendJSON(text[:0]); err != nil {
			return err
		}
		item := text
		if r.format.isPartial {
			if partial, err = clusterjson.ToPartial(partial[:0], text); err != nil {
				return err
			}
			item = partial
		}
		if err := out.writeItem(item); err != nil {
			return err
		}
	}
	return r.req.Context().Err()
}

// selects reports whether the request selects an object of a participant.
func (r *request) selects(p *participant, object *objectcache.Object) (bool, error) {
	if p.namespace != "" && object.Namespace() != p.namespace || !p.includes(object.Namespace()) || !r.selectsLabels(object.Labels()) {
		return false, nil
	}
	return r.fields.Matches(object.Namespace(), object.Name(), func() ([]byte, error) { return object.AppendJSON(nil) })
}

func (r *request) selectsLabels(of labels.Labels) bool {
	return r.options.LabelSelector == nil || r.options.LabelSelector.Empty() || r.options.LabelSelector.Matches(of)
}
