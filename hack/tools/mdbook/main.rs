//! mdbook FOLDER: builds the book that the folder's book.toml describes. docs/SUMMARY.md is its table of
//! contents.
use mdbook_driver::MDBook;

fn main() {
    tracing_subscriber::fmt().without_time().with_writer(std::io::stderr).init();
    let folder = std::env::args().nth(1).expect("usage: mdbook FOLDER");
    if let Err(error) = MDBook::load(folder).and_then(|book| book.build()) {
        eprintln!("mdbook: {error:?}");
        std::process::exit(1);
    }
}
