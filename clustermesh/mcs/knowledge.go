package mcs

import "strait.io/strait/clustermesh"

// KnowledgeOf returns for each cluster whether something absent from its record is gone. Knowledge of a
// cluster is current if one of its daemons is heard now and its leader's record is here. If its
// machines answer but its daemons are down, its record may be out of date.
func KnowledgeOf(own clustermesh.ClusterName, s clustermesh.State) map[clustermesh.ClusterName]Knowledge {
	alive := map[clustermesh.ClusterName]bool{own: true}
	for o, contact := range s.Contacts.All() {
		if contact.Heard() {
			alive[o.Cluster] = true
		}
	}
	out := map[clustermesh.ClusterName]Knowledge{}
	for _, c := range s.Clusters() {
		_, led := s.Records.Lookup(clustermesh.Origin{Cluster: c})
		switch {
		case !alive[c]:
			out[c] = Held
		case led:
			out[c] = Current
		default:
			out[c] = Unknown
		}
	}
	for c := range alive { // heard, but no record of it is here yet
		if _, known := out[c]; !known {
			out[c] = Unknown
		}
	}
	return out
}
