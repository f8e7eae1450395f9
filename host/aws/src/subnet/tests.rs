//! Which subnet a launch uses, what its addresses come to, and for how long that is remembered.

use super::*;
use crate::fake::{FakeAws, at};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn provider() -> SubnetProvider {
    SubnetProvider::new(FakeAws::new(Vec::new()), SignedDuration::from_mins(1))
}

/// A subnet as the status of a class tells it.
fn in_status(id: &str, zone: &str) -> Subnet {
    Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: None,
    }
}

/// A subnet as EC2 tells it.
fn told(id: &str, free_addresses: i64) -> SubnetInfo {
    SubnetInfo {
        id: id.to_owned(),
        zone: "a".to_owned(),
        zone_id: None,
        free_addresses,
    }
}

fn pods(in_zone_a: i64) -> BTreeMap<String, i64> {
    [("a".to_owned(), in_zone_a)].into()
}

impl SubnetProvider {
    fn left(&self, id: &str, now: Timestamp) -> Option<i64> {
        lock(&self.addresses).known(id, now)
    }
}

#[test]
fn a_launch_gets_the_emptiest_subnet_of_each_zone_as_launches_before_it_leave_them() {
    let subnets = [
        in_status("subnet-1", "a"),
        in_status("subnet-2", "a"),
        in_status("subnet-3", "b"),
    ];
    let provider = provider();
    provider.note_free(&[told("subnet-1", 90), told("subnet-2", 120)], at(0));
    // Of equal ones the first of the status; what nobody knows of counts as empty, and is all that its zone has.
    for chosen in ["subnet-2", "subnet-1", "subnet-2", "subnet-1"] {
        let zonal = provider.zonal_for_launch(&subnets, &pods(30), at(1));
        assert_eq!(zonal.get("a").unwrap().id, chosen);
        assert_eq!(zonal.get("b").unwrap().id, "subnet-3");
        assert_eq!(zonal.zone_of(chosen).unwrap().zone, "a");
        assert!(zonal.get("c").is_none());
    }
    // Two launches each.
    let left = ["subnet-1", "subnet-2"].map(|id| provider.left(id, at(1)));
    assert_eq!(left, [Some(30), Some(60)]);
}

#[test]
fn zones_without_an_instance_get_back_what_they_were_debited_unless_ec2_has_told_anew() {
    let subnets = [in_status("subnet-1", "a"), in_status("subnet-2", "b")];
    let by_zone = [("a".to_owned(), 30), ("b".to_owned(), 20)].into();
    // What EC2 tells before the answer comes, zones of the instances, and what is left of both.
    let cases = [
        (None, vec![], [100, 50]),
        (None, vec!["a"], [70, 50]),
        (None, vec!["a", "b"], [70, 30]),
        (Some(90), vec![], [90, 50]),
        (Some(90), vec!["a"], [90, 50]),
        (Some(100), vec![], [100, 50]),
    ];
    for (news, used, want) in cases {
        let provider = provider();
        provider.note_free(&[told("subnet-1", 100), told("subnet-2", 50)], at(0));
        let zonal = provider.zonal_for_launch(&subnets, &by_zone, at(1));
        if let Some(free) = news {
            provider.note_free(&[told("subnet-1", free)], at(2));
        }
        provider.settle(&zonal, &used);
        let left = ["subnet-1", "subnet-2"].map(|id| provider.left(id, at(3)).unwrap());
        assert_eq!(left, want, "{news:?} {used:?}");
    }
}

#[test]
fn who_settles_late_gives_back_nothing_of_what_others_were_debited() {
    let provider = provider();
    let subnets = [in_status("subnet-1", "a")];
    provider.note_free(&[told("subnet-1", 100)], at(0));
    let late = provider.zonal_for_launch(&subnets, &pods(30), at(1));
    // EC2 tells the same number as before: somebody else gave back as many.
    provider.note_free(&[told("subnet-1", 100)], at(2));
    provider.zonal_for_launch(&subnets, &pods(20), at(3));
    provider.settle(&late, &[]);
    assert_eq!(provider.left("subnet-1", at(4)), Some(80));
}

#[test]
fn where_ec2_told_nothing_launches_take_turns_and_what_is_free_stays_unknown() {
    let provider = provider();
    let subnets = [in_status("subnet-1", "a"), in_status("subnet-2", "a")];
    for chosen in ["subnet-1", "subnet-2"] {
        let zonal = provider.zonal_for_launch(&subnets, &pods(30), at(1));
        assert_eq!(zonal.get("a").unwrap().id, chosen);
    }
    assert_eq!(provider.free_by_zone(&subnets, at(2)), BTreeMap::new());
}

#[test]
fn a_full_subnet_has_nothing_left_whatever_is_in_flight() {
    let provider = provider();
    let subnets = [in_status("subnet-1", "a")];
    provider.note_free(&[told("subnet-1", 100)], at(0));
    let zonal = provider.zonal_for_launch(&subnets, &pods(30), at(1));
    provider.mark_full("subnet-1", at(2));
    provider.settle(&zonal, &[]);
    assert_eq!(provider.left("subnet-1", at(3)), Some(0));
    assert_eq!(
        provider.free_by_zone(&subnets, at(3)),
        [("a".to_owned(), 0)].into()
    );
}

#[test]
fn what_no_listing_renews_is_unknown_after_five_minutes_and_then_forgotten() {
    let provider = provider();
    let subnets = [in_status("subnet-1", "a"), in_status("subnet-2", "a")];
    provider.note_free(&[told("subnet-1", 100)], at(0));
    provider.zonal_for_launch(&subnets, &pods(30), at(200));
    let free = |now| provider.free_by_zone(&subnets, now).get("a").copied();
    assert_eq!(free(at(299)), Some(70), "a launch renews nothing");
    assert_eq!(free(at(300)), None);
    let kept = || {
        let addresses = lock(&provider.addresses);
        addresses.counts.keys().cloned().collect::<Vec<_>>()
    };
    provider.note_free(&[told("subnet-3", 7)], at(300));
    assert_eq!(kept(), ["subnet-3"]);
    provider.zonal_for_launch(&subnets, &pods(30), at(601));
    assert_eq!(
        kept(),
        ["subnet-1"],
        "what is in flight where EC2 told nothing"
    );
    provider.note_free(&[], at(901));
    assert_eq!(kept(), [""; 0]);
}

#[test]
fn counts_outlive_the_time_between_two_listings_by_four_minutes_at_least() {
    for (interval, believed_for) in [
        (SignedDuration::ZERO, SignedDuration::from_mins(5)),
        (SignedDuration::from_mins(1), SignedDuration::from_mins(5)),
        (HOUR, SignedDuration::from_mins(64)),
    ] {
        let provider = SubnetProvider::new(FakeAws::new(Vec::new()), interval);
        provider.note_free(&[told("subnet-1", 100)], at(0));
        let end = after(at(0), believed_for);
        let before = end - SignedDuration::from_secs(1);
        let left = [before, end].map(|now| provider.left("subnet-1", now));
        assert_eq!(left, [Some(100), None], "{interval}");
    }
}

#[test]
fn no_more_subnets_are_counted_than_the_bound_allows() {
    let provider = provider();
    for index in 0..=COUNTS_MAX {
        let name = format!("subnet-{index}");
        provider.mark_full(&name, at(i64::from(index != 7)));
    }
    assert_eq!(lock(&provider.addresses).counts.len(), COUNTS_MAX);
    assert_eq!(
        provider.left("subnet-7", at(2)),
        None,
        "the oldest made room"
    );
    assert_eq!(provider.left("subnet-0", at(2)), Some(0));
}

#[tokio::test]
async fn ids_are_one_query_and_each_term_of_tags_is_another() {
    let term = |id: Option<&str>, tags: &[(&str, &str)]| {
        let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        SubnetSelectorTerm {
            id: id.map(str::to_owned),
            tags: tags.collect(),
        }
    };
    let cases = [
        (
            vec![term(Some("subnet-1"), &[]), term(Some("subnet-0"), &[])],
            1,
            vec!["subnet-0", "subnet-1"],
        ),
        (
            vec![term(None, &[("team", "a")]), term(Some("subnet-0"), &[])],
            2,
            vec!["subnet-0", "subnet-1"],
        ),
        (
            vec![term(None, &[("team", "b")]), term(None, &[("team", "c")])],
            2,
            vec![],
        ),
    ];
    for (terms, calls, found) in cases {
        let aws = FakeAws::new(Vec::new());
        let provider = SubnetProvider::new(Arc::clone(&aws) as _, SignedDuration::from_mins(1));
        let mut class = Ec2NodeClass::default();
        class.spec.subnet_selector_terms = terms;
        let subnets = provider.list(&class, at(0)).await.unwrap();
        let ids: Vec<&str> = subnets.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, found);
        provider.list(&class, at(59)).await.unwrap();
        // That there are none is not remembered: somebody is about to make them.
        let again = if found.is_empty() { calls } else { 0 };
        assert_eq!(aws.calls("DescribeSubnets"), calls + again);
        provider.list(&class, at(60)).await.unwrap();
        assert_eq!(aws.calls("DescribeSubnets"), 2 * calls + again);
    }
}
